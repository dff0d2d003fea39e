package nic

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/fabric"
)

// hasMedium tells whether a file is on anything but memory.
func hasMedium(file *os.File) bool {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(file.Fd()), &fs); err != nil {
		return true
	}
	switch fs.Type {
	case unix.TMPFS_MAGIC, unix.RAMFS_MAGIC, unix.HUGETLBFS_MAGIC:
		return false
	}
	return true
}

// persists tells whether a FLUSH of memory, found valid before, has a medium to
// reach. What lies in memory alone is as durable as it will be: no helper, whose
// waking costs more than all else of a chain.
func (e *Engine) persists(flags fabric.Flags, at fabric.Target) bool {
	return flags&fabric.Persist != 0 && e.regions[at.Key&placeMask].medium
}

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
