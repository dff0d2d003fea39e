package migrate

import (
	"slices"

	"github.com/ostrodb/ostro/cluster/view"
)

// pieces cuts ranges into at least n that cover the same places, as alike in size as halving makes
// them. There are fewer only if there are not so many places.
func pieces(ranges view.Ranges, n int) []view.Range {
	cut := slices.Clone([]view.Range(ranges))
	for len(cut) > 0 && len(cut) < n {
		at := 0
		for i, r := range cut {
			if r.Last-r.First > cut[at].Last-cut[at].First {
				at = i
			}
		}
		r := cut[at]
		if r.First == r.Last {
			break
		}
		middle := r.First + (r.Last-r.First)/2
		cut[at].Last = middle
		cut = slices.Insert(cut, at+1, view.Range{First: middle + 1, Last: r.Last})
	}
	return cut
}
