package extension

import (
	"sync"

	"github.com/ostrodb/ostro/internal/background"
)

// A response is appended to what the caller gave for it, up to keptBytes. What is more is kept in parts of one size until the
// call has ended well, and only then put into one. So a call that answers for ever moves nothing twice, has no room cleared that is
// larger than a part, and leaves nothing to collect: parts are used again. Whoever stops the world waits for the one who clears
// sixteen megabytes on a thread of low priority, and everybody waits for him.

// part is a piece of a long response.
type part [background.Piece]byte

var parts = sync.Pool{New: func() any { return new(part) }}

// responded is how long the response is by now, with what the caller had there before.
func (t *Task) responded() int { return len(t.resp) + t.moreLen }

// tooLong tells that the response may not have so many bytes more.
func (t *Task) tooLong(more int) bool {
	return t.responded()-t.respStart+more > t.limits.ResponseBytes
}

// respond appends to the response. Others may run meanwhile.
func (t *Task) respond(b []byte) *CallError {
	need := t.responded() + len(b)
	if len(b) == 0 || t.moreLen == 0 && need <= max(keptBytes, cap(t.resp)) {
		t.resp = append(t.resp, b...)
		return nil
	}
	if err := t.hold(need); err != nil {
		return &CallError{Kind: OverLimit, Function: t.inv.Function, Message: heldTooMuch + err.Error(), Err: err}
	}
	for {
		n := copy(t.room(), b)
		b, t.moreLen = b[n:], t.moreLen+n
		if len(b) == 0 {
			return nil
		}
		if e := t.giveWay(SliceEnd); e != nil {
			return e
		}
	}
}

// room is what is free of the last part, or a new one.
func (t *Task) room() []byte {
	at := t.moreLen % len(part{})
	if at == 0 {
		t.more = append(t.more, parts.Get().(*part))
	}
	return t.more[len(t.more)-1][at:]
}

// gather puts the whole response into one piece of memory. Others run meanwhile, and may say that the call is to end.
func (t *Task) gather() *CallError {
	if t.moreLen == 0 {
		return nil
	}
	whole := make([]byte, 0, t.responded())
	whole = append(whole, t.resp...)
	for i, p := range t.more {
		whole = append(whole, p[:min(len(p), t.moreLen-i*len(p))]...)
		if err := t.giveWay(SliceEnd); err != nil {
			return err
		}
	}
	t.resp = whole
	t.dropParts()
	return nil
}

func (t *Task) dropParts() {
	for i, p := range t.more {
		parts.Put(p)
		t.more[i] = nil
	}
	t.more, t.moreLen = t.more[:0], 0
}
