package index

import "github.com/ostrodb/ostro/engine/record"

// Walk visits the entries whose places may lie in [from, to], as StepRange does,
// within the caller's guard. known is the place with its unknown bits zero.
// f returns false to end the walk after the current bucket.
func (ix *Index) Walk(from, to record.Place, f func(known record.Place, pr *Probe) bool) {
	more := true
	visit := func(pr *Probe) bool {
		if !f(pr.place, pr) {
			more = false
		}
		return more
	}
	for cursor := ix.StepRange(from, to, 0, primaryBuckets, visit); cursor != 0 && more; {
		cursor = ix.StepRange(from, to, cursor, primaryBuckets, visit)
	}
}
