package replica

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/background"
)

func (b *Backup) onPut(_ context.Context, c *peer.Call) (any, []byte, error) {
	var q PutRequest
	if err := c.Bind(&q); err != nil {
		return nil, nil, err
	}
	bytes, done, err := memoryOf(&q, c.Bulk)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	if uint64(q.End) != uint64(len(bytes)) || q.End > b.o.SegmentBytes {
		return nil, nil, fmt.Errorf("%w: %d bytes came of a segment that ends at %d", ErrInvalid, len(bytes), q.End)
	}
	l, err := b.writable(q.Log, c.From)
	if err != nil {
		return nil, nil, err
	}
	has, err := l.before(&q)
	l.mu.Unlock()
	if err != nil || has {
		return nil, nil, err
	}
	inTurn(q.Patient, func(rest func()) {
		if !q.Checked {
			err = verifyEntries(bytes, q.Log, q.Segment, q.Closing, record.ScanOptions{Between: rest})
		}
		if err == nil {
			err = checkSum(bytes, q.Sum, rest)
		}
	})
	var tmp string
	background.Waiting(func() {
		if err == nil {
			tmp, err = storeReplica(b.dir("replicas"), q.Log, q.Segment, q.Roster.Version, q.Closing, bytes)
		}
		done() // To give back megabytes takes its time, too.
	})
	if isFull(err) {
		b.count.refusals.Add(1)
		err = fmt.Errorf("%w: %w", ErrFull, err)
	}
	if err != nil {
		return nil, nil, err
	}
	if l, err = b.writable(q.Log, c.From); err != nil {
		return nil, nil, errors.Join(err, os.Remove(tmp))
	}
	defer l.mu.Unlock()
	if err := l.put(&q, tmp); err != nil {
		return nil, nil, err
	}
	b.count.puts.Add(1)
	return nil, nil, nil
}

// before tells whether the copy is here already; then only its roster is new.
func (l *copies) before(q *PutRequest) (has bool, err error) {
	if err := l.current(q.Segment, q.Roster.Version, &q.Roster); err != nil && !errors.Is(err, ErrStale) {
		return false, err
	}
	r := l.replicas[q.Segment]
	if r == nil || r.state != StateClosed || r.closing != q.Closing || r.corrupt {
		return false, nil
	}
	if err := l.adopt(q.Roster); err != nil {
		return false, err
	}
	return l.replicas[q.Segment] == r, nil
}

// put makes a file that was written the replica, in place of any other.
func (l *copies) put(q *PutRequest, tmp string) error {
	err := l.adopt(q.Roster)
	if err == nil && !l.saved.Roster.Segments.Contains(uint64(q.Segment)) {
		err = fmt.Errorf("%w: segment %d is not in roster %d", ErrStale, q.Segment, l.saved.Roster.Number)
	}
	old := l.replicas[q.Segment]
	if err == nil && old != nil {
		err = old.revoke()
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	path, err := adoptReplica(l.b.dir("replicas"), tmp, l.id, q.Segment)
	if err != nil {
		return err
	}
	l.replicas[q.Segment] = &replica{
		log: l, segment: q.Segment, version: q.Roster.Version, state: StateClosed, closing: q.Closing, path: path,
	}
	if old != nil {
		old.lost = true
		return old.leaveBuffer()
	}
	return nil
}
