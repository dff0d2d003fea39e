package replica

import (
	"context"
	"fmt"
	"time"

	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// partBytes is about how much one part of a fetch carries.
const partBytes = 256 << 10

// recoveryPause is how long nobody fetches before a recovery counts as over.
const recoveryPause = 500 * time.Millisecond

func (b *Backup) onFetch(ctx context.Context, c *peer.Call) (any, []byte, error) {
	var q FetchRequest
	if err := c.Bind(&q); err != nil {
		return nil, nil, err
	}
	r, err := b.replicaOf(q.Log, q.Segment)
	if err != nil {
		return nil, nil, err
	}
	if err := b.takeTurn(ctx, c); err != nil {
		return nil, nil, err
	}
	defer b.endTurn()
	a, err := b.fetch(r, &q, c)
	if err != nil {
		r.markCorrupt(err)
		return nil, nil, err
	}
	b.count.fetches.Add(1)
	b.count.fetchedBytes.Add(a.Bytes)
	return a, nil, nil
}

// fetch answers from the replica's buffer, or from what is read of its file.
func (b *Backup) fetch(r *replica, q *FetchRequest, c *peer.Call) (a FetchAnswer, err error) {
	h, err := r.pin()
	defer h.release()
	switch {
	case err != nil:
		return a, err
	case h.buf == nil:
		v := b.shelf.borrow(&h)
		defer b.shelf.giveBack(v)
		err = v.err
	default:
		memory := segmentMemory.Get().(*[]byte)
		defer segmentMemory.Put(memory)
		if err = h.load(*memory); !h.pinned {
			*memory = h.bytes
		}
	}
	if err != nil {
		return a, err
	}
	return b.send(q, &h, c)
}

// takeTurn waits until not too many segments are read. Empty parts tell the caller that it goes on.
func (b *Backup) takeTurn(ctx context.Context, c *peer.Call) error {
	for {
		select {
		case b.reading <- struct{}{}:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(signOfLife):
			if err := c.Send(FetchPart{}, nil); err != nil {
				return err
			}
		}
	}
}

func (b *Backup) endTurn() {
	b.fetched.Store(time.Now().UnixNano())
	<-b.reading
}

// recovering tells whether heirs read here, or did a moment ago.
func (b *Backup) recovering() bool {
	return len(b.reading) > 0 || time.Since(time.Unix(0, b.fetched.Load())) < recoveryPause
}

func (b *Backup) replicaOf(log record.LogID, id record.SegmentID) (*replica, error) {
	if l := b.log(log, false); l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		if r := l.replicas[id]; r != nil {
			return r, nil
		}
	}
	return nil, fmt.Errorf("%w: segment %d of log %x", ErrNotFound, id, uint64(log))
}

// send checks the segment up to the cut, all of it, and only then sends what was
// asked for.
func (b *Backup) send(q *FetchRequest, h *held, c *peer.Call) (a FetchAnswer, err error) {
	ext, err := h.upTo(q.Cut)
	if err != nil {
		return a, err
	}
	a = FetchAnswer{End: uint32(ext.End), Batch: ext.Batch, Closed: ext.Closed}
	if q.Whole {
		err = sendWhole(h.bytes[:ext.End], &a, c)
		return a, err
	}
	p := parts{call: c, answer: &a}
	above := record.NewAbove(view.Floors(q.Floors), q.Segment, h.bytes[:ext.End])
	for off, e := range record.Entries(h.bytes[:ext.End]) {
		if place, ok := b.o.Place(e); ok && contains(q.Ranges, place) && above.Counts(off, place) {
			if err := p.add(e.Bytes()); err != nil {
				return a, err
			}
		}
	}
	err = p.flush()
	return a, err
}

// upTo finds how far the segment goes up to a cut. A closed one was scanned before it was taken for one,
// and its bytes have the same sum: behind the cut nothing is left to look for.
func (h *held) upTo(cut record.BatchID) (record.Extent, error) {
	if h.info.State == StateClosed && h.closing.Batch <= cut {
		return record.Extent{End: int(h.closing.End), Batch: h.closing.Batch, Closed: true}, nil
	}
	return h.scan(func(n record.BatchID) bool { return n <= cut })
}

func sendWhole(bytes []byte, a *FetchAnswer, c *peer.Call) error {
	for at := 0; at < len(bytes); at += partBytes {
		piece := bytes[at:min(at+partBytes, len(bytes))]
		if err := c.Send(FetchPart{}, piece); err != nil {
			return err
		}
		a.Bytes += uint64(len(piece))
	}
	return nil
}

// contains tells whether a place lies in one of the ranges. Heirs have few.
func contains(rs view.Ranges, p record.Place) bool {
	for i := range rs {
		if rs[i].Contains(p) {
			return true
		}
	}
	return false
}

// parts gathers entries and sends them when they are many.
type parts struct {
	call    *peer.Call
	answer  *FetchAnswer
	buf     []byte
	entries int
}

func (p *parts) add(entry []byte) error {
	if len(p.buf)+len(entry) > partBytes && p.entries > 0 {
		if err := p.flush(); err != nil {
			return err
		}
	}
	if p.buf == nil {
		p.buf = make([]byte, 0, partBytes)
	}
	p.buf = append(p.buf, entry...)
	p.entries++
	return nil
}

func (p *parts) flush() error {
	if p.entries == 0 {
		return nil
	}
	err := p.call.Send(FetchPart{Entries: p.entries}, p.buf)
	p.answer.Entries += uint64(p.entries)
	p.answer.Bytes += uint64(len(p.buf))
	p.buf, p.entries = p.buf[:0], 0
	return err
}
