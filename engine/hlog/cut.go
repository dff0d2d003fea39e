package hlog

import (
	"cmp"
	"slices"
)

// Cut closes all open segments at one moment and returns every closed one, by
// increasing id: what was written before that moment is in them, what is
// written later is not.
//
// That holds across sessions, for an append and what it makes visible happen
// under its head's lock, and here all of them are held. It also holds for
// updates in place: the segments of a volatile log are announced read-only at
// the same moment. Without that a checkpoint would hold an update in place and
// lack an insertion that came before it.
func (l *Log) Cut() []*Segment {
	l.sides.births.Lock() // None begins meanwhile.
	defer l.sides.births.Unlock()
	heads := l.everyHead()
	for _, h := range heads {
		h.Lock()
	}
	for _, h := range heads {
		h.leave()
	}
	closed, announced := l.announceClosed()
	for _, h := range heads {
		h.Unlock()
	}
	for _, s := range announced {
		l.still(s)
	}
	slices.SortFunc(closed, func(a, b *Segment) int { return cmp.Compare(a.ID, b.ID) })
	return closed
}

// announceClosed lists the closed segments and announces those read-only that
// were mutable so far.
func (l *Log) announceClosed() (closed, announced []*Segment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.segments {
		if !s.closed.Load() {
			continue
		}
		closed = append(closed, s)
		if l.announce(s) {
			announced = append(announced, s)
		}
	}
	return closed, announced
}
