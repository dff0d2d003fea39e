package record

// Span is the places from First to Last, both included.
type Span struct{ First, Last Place }

// Contains tells whether p lies in s.
func (s Span) Contains(p Place) bool { return s.First <= p && p <= s.Last }

// Floor says from where on a log counts for some places: it had them before, gave them
// away, and what it holds of them from that time is history.
//
// Side segments have no batches in the order, so their ids tell.
type Floor struct {
	Spans   []Span
	Batch   BatchID   // the first that counts
	Segment SegmentID // the first side segment that counts
}

// Counts tells whether an entry at p counts that is in batch n of a segment. n is 0 in
// a side segment.
func (f *Floor) Counts(p Place, n BatchID, id SegmentID) bool {
	return !f.Below(n, id) || !InSpans(f.Spans, p)
}

// Below tells whether batch n of a segment is below the floor, so that nothing of the
// floor's places in it counts.
func (f *Floor) Below(n BatchID, id SegmentID) bool {
	if n == 0 {
		return id < f.Segment
	}
	return n < f.Batch
}

// InSpans tells whether a place lies in one of a few spans.
func InSpans(spans []Span, p Place) bool {
	for i := range spans {
		if spans[i].Contains(p) {
			return true
		}
	}
	return false
}

// Above tells which entries of one segment count, by floors. Batches end in their seals,
// so those are looked through first. A nil Above says that all do.
type Above struct {
	floors []Floor
	id     SegmentID
	seals  []sealAt
	next   int // the first that is not before the entry asked for last
}

// sealAt is where a batch ends.
type sealAt struct {
	off uint32
	n   BatchID
}

// NewAbove prepares to tell what of seg, a prefix that Scan accepted, counts.
func NewAbove(floors []Floor, id SegmentID, seg []byte) *Above {
	if len(floors) == 0 {
		return nil
	}
	a := &Above{floors: floors, id: id}
	below := false
	for off, p := range Entries(seg) {
		if p.Type() != TypeSeal {
			continue
		}
		n := p.Batch()
		a.seals = append(a.seals, sealAt{off, n})
		for i := range floors {
			below = below || floors[i].Below(n, id)
		}
	}
	if !below {
		return nil
	}
	return a
}

// Counts tells whether the entry at off counts, whose place is p. Entries are asked for in
// their order.
func (a *Above) Counts(off uint32, p Place) bool {
	if a == nil {
		return true
	}
	for a.next < len(a.seals) && a.seals[a.next].off < off {
		a.next++
	}
	if a.next == len(a.seals) {
		return true // Nothing is behind the last seal.
	}
	for i := range a.floors {
		if !a.floors[i].Counts(p, a.seals[a.next].n, a.id) {
			return false
		}
	}
	return true
}
