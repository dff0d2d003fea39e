package hlog

import (
	"fmt"

	"github.com/ostrodb/ostro/engine/record"
)

// Resume goes on with the order of batches where a former life ended, once all
// segments that it had closed are adopted. It takes the others, the tails, and
// returns those that are left to adopt.
//
// Power may have taken a batch from one tail and left in another what was built
// on it. So only the batches up to the first one that is missing count; see
// record.Prefix. None is missing up to the last batch of a closed segment, for a
// file is cut only when all before are synced; nor up to what SyncedMeta says,
// which speaks for the segments that are gone.
//
// Each tail is ended by a closing seal behind its last batch that counts, and
// all are synced before the first one is cut. A death in between changes
// nothing: the batch that was missing still is. Afterwards numbers are drawn
// again from there on, so none of what was dropped may ever be seen again.
//
// Of side segments, which have no numbers, all counts that is whole.
func (l *Log) Resume(found []Found) ([]Found, error) {
	safe, err := l.safe()
	if err != nil {
		return nil, err
	}
	tails := make([]tail, len(found))
	var seen []record.BatchID
	buf := make([]byte, l.opts.SegmentBytes)
	for i, f := range found {
		tails[i] = tail{Found: f}
		if seen, err = tails[i].look(buf, seen); err != nil {
			return nil, fmt.Errorf("segment %d: %w", f.ID, err)
		}
	}
	last := record.Prefix(safe, seen)
	var kept []Found
	for i := range tails {
		t := &tails[i]
		if err := l.end(t, buf, last); err != nil {
			return nil, fmt.Errorf("end segment %d: %w", t.ID, err)
		}
		if t.ext.End > 0 {
			kept = append(kept, t.Found)
		}
	}
	l.order.last = last
	l.synced.Store(uint64(last))
	l.copies.upTo.Store(uint64(last)) // Begin sees to them, and reads no memory.
	return kept, nil
}

// safe is a batch up to which none is missing. The caller is alone.
func (l *Log) safe() (record.BatchID, error) {
	if l.opts.Device == nil {
		return 0, nil
	}
	n, err := ReadSynced(l.opts.Device)
	l.vouch.batch = n
	for _, s := range l.segments {
		n = max(n, s.batch)
	}
	return n, err
}

// tail is a segment that was not cut when the log ended.
type tail struct {
	Found
	ext     record.Extent
	batches int // that were found
}

// look adds the batches of the tail to those seen.
func (t *tail) look(buf []byte, seen []record.BatchID) ([]record.BatchID, error) {
	b, err := t.read(buf)
	if err != nil {
		return seen, err
	}
	if t.ext, err = record.Scan(b, t.ID); err != nil {
		return seen, err
	}
	t.batches = t.ext.Batches
	for _, p := range record.Entries(b[:t.ext.End]) {
		if p.Type() == record.TypeSeal {
			seen = append(seen, p.Batch())
		}
	}
	return seen, nil
}

func (f Found) read(buf []byte) ([]byte, error) {
	b := buf[:min(f.file.Size(), int64(len(buf)))]
	for off := 0; off < len(b); off += copyStep {
		p := b[off:min(off+copyStep, len(b))]
		if n, err := f.file.ReadAt(p, int64(off)); n < len(p) {
			return nil, fmt.Errorf("read %s: %w", f.file.Path(), err)
		}
	}
	return b, nil
}

// end ends a tail behind its last batch up to last, for good. A segment in
// which nothing counts is removed.
func (l *Log) end(t *tail, buf []byte, last record.BatchID) error {
	if t.ext.Batch > last {
		if err := t.cut(buf, last); err != nil {
			return err
		}
	}
	l.tell(t)
	if t.ext.End == 0 {
		l.SkipTo(t.ID + 1)
		t.Close()
		return l.opts.Device.Remove(t.ID)
	}
	if !t.ext.Closed {
		var seal [record.SealBytes]byte
		t.ext.Chain.PutSeal(seal[:], t.lastOf(last), true)
		if _, err := t.file.WriteAt(seal[:], int64(t.ext.End)); err != nil {
			return err
		}
	}
	return t.file.Sync()
}

// lastOf is the number of the closing seal of a tail in a log whose last batch is last. In
// a side segment, whose batches have none, it has none either.
func (t *tail) lastOf(last record.BatchID) record.BatchID {
	if t.ext.Batch == 0 {
		return 0
	}
	return last
}

// cut leaves the batches after last out.
func (t *tail) cut(buf []byte, last record.BatchID) error {
	b, err := t.read(buf)
	if err == nil {
		t.ext, err = record.ScanWith(b, t.ID, record.ScanOptions{Only: func(n record.BatchID) bool { return n <= last }})
	}
	return err
}

// tell says what of a tail is dropped.
func (l *Log) tell(t *tail) {
	switch dropped := t.batches - t.ext.Batches; {
	case dropped > 0:
		l.opts.Logger.Warn("batches at the end of a segment were dropped: a loss of power took others that came before them",
			"segment", t.ID, "at", t.ext.End, "batches", dropped, "bytes", t.ext.LostBytes)
	case t.ext.LostBytes > 0 && !t.ext.Closed:
		l.opts.Logger.Warn("an unfinished batch at the end of a segment was dropped: it was never acknowledged",
			"segment", t.ID, "at", t.ext.End, "bytes", t.ext.LostBytes)
	}
}
