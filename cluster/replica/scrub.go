package replica

import (
	"slices"
	"time"

	"github.com/ostrodb/ostro/internal/background"
)

// scrubPause is the least time between two rounds.
const scrubPause = time.Minute

// scrubAll reads closed replicas again and again, slowly, and finds those that have
// changed since they were written.
func (b *Backup) scrubAll() {
	background.Quiet()
	for b.ctx.Err() == nil {
		b.scrubRound()
		b.pause(scrubPause)
	}
}

func (b *Backup) scrubRound() {
	var list []*replica
	background.Aloud(func() { list = b.closedReplicas() })
	var memory []byte
	for _, r := range list {
		if b.ctx.Err() != nil {
			return
		}
		begin := time.Now()
		n, kept := r.scrub(memory)
		memory = kept
		b.count.scrubbedBytes.Add(uint64(n))
		b.pause(time.Duration(float64(n)/float64(b.o.ScrubRate)*float64(time.Second)) - time.Since(begin))
	}
}

// Scrub reads all closed replicas once, at full speed, and returns how many are
// corrupt.
func (b *Backup) Scrub() (corrupt int) {
	var memory []byte
	for _, r := range b.closedReplicas() {
		_, memory = r.scrub(memory)
	}
	for _, l := range b.all() {
		l.mu.Lock()
		for _, r := range l.replicas {
			if r.corrupt {
				corrupt++
			}
		}
		l.mu.Unlock()
	}
	return corrupt
}

// closedReplicas are those that can be checked, in the order of their segments.
func (b *Backup) closedReplicas() []*replica {
	var list []*replica
	for _, l := range b.all() {
		l.mu.Lock()
		for _, r := range l.replicas {
			if r.state == StateClosed && !r.corrupt {
				list = append(list, r)
			}
		}
		l.mu.Unlock()
	}
	slices.SortFunc(list, func(a, b *replica) int {
		switch {
		case a.segment < b.segment:
			return -1
		case a.segment > b.segment:
			return 1
		}
		return 0
	})
	return list
}

// scrub checks one replica.
func (r *replica) scrub(memory []byte) (bytes int, kept []byte) {
	var h held
	var err error
	background.Aloud(func() { h, err = r.pin() })
	defer h.release()
	if err == nil {
		err = h.load(memory)
	}
	if err == nil {
		_, err = h.scan(nil)
	}
	if err != nil {
		// A file that is not there was dropped meanwhile, or somebody took it away.
		background.Aloud(func() { r.markCorrupt(err) })
		return 0, memory
	}
	if !h.pinned {
		memory = h.bytes
	}
	return len(h.bytes), memory
}
