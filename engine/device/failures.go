package device

import (
	"sync"

	"github.com/ostrodb/ostro/engine/record"
)

// failures remembers the segments whose Sync failed, each with its first error.
type failures struct {
	mu    sync.Mutex
	first map[record.SegmentID]error
}

func (f *failures) of(id record.SegmentID) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.first[id]
}

// keep returns the error that counts: the first one.
func (f *failures) keep(id record.SegmentID, err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if old, ok := f.first[id]; ok {
		return old
	}
	if f.first == nil {
		f.first = make(map[record.SegmentID]error)
	}
	f.first[id] = err
	return err
}

// forget is for a removed segment.
func (f *failures) forget(id record.SegmentID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.first, id)
}
