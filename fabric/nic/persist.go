package nic

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/fabric"
)

// persist syncs a part of a region, found valid before, and calls then in the loop.
func (e *Engine) persist(at fabric.Target, n uint64, then func(fabric.Status)) {
	r := e.regions[at.Key&placeMask]
	page := uint64(os.Getpagesize())
	from := at.Addr &^ (page - 1)
	part := r.mem.Bytes()[from : at.Addr+n]
	r.persisting++
	go func() {
		status := fabric.OK
		if len(part) > 0 {
			if err := unix.Msync(part, unix.MS_SYNC); err != nil {
				e.conf.Log.Error("a flush failed", "error", err)
				status = fabric.RemoteFault
			}
		}
		if err := e.do(func() { e.persisted(r); then(status) }); err != nil {
			return // The engine is gone, and with it whoever waited.
		}
	}()
}

func (e *Engine) persisted(r *region) {
	if r.persisting--; r.persisting == 0 && r.revoked {
		_ = r.mem.Close()
	}
}
