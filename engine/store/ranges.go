package store

import (
	"cmp"
	"slices"

	"github.com/ostrodb/ostro/engine/record"
)

// Range is all places from First to Last, both included.
type Range struct{ First, Last record.Place }

var wholeRange = Range{0, ^record.Place(0)}

func (r Range) has(p record.Place) bool { return r.First <= p && p <= r.Last }

func (r Range) meets(o Range) bool { return r.First <= o.Last && o.First <= r.Last }

func anyHas(ranges []Range, p record.Place) bool {
	for _, r := range ranges {
		if r.has(p) {
			return true
		}
	}
	return false
}

// exact tells whether all bits that decide whether a place lies in r are among those that an index knows.
func (r Range) exact() bool { return r.First<<32 == 0 && ^r.Last<<32 == 0 }

func allExact(ranges []Range) bool {
	return !slices.ContainsFunc(ranges, func(r Range) bool { return !r.exact() })
}

func overlap(a, b []Range) bool {
	for _, r := range a {
		for _, o := range b {
			if r.meets(o) {
				return true
			}
		}
	}
	return false
}

// intersect gives what is in both a and b, in order. Both may have thousands.
func intersect(a, b []Range) (both []Range) {
	a, b = inOrder(a), inOrder(b)
	for len(a) > 0 && len(b) > 0 {
		if a[0].meets(b[0]) {
			both = append(both, Range{max(a[0].First, b[0].First), min(a[0].Last, b[0].Last)})
		}
		if a[0].Last < b[0].Last {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return both
}

// inOrder gives ranges that have no places in common by their first ones.
func inOrder(ranges []Range) []Range {
	first := func(a, b Range) int { return cmp.Compare(a.First, b.First) }
	if slices.IsSortedFunc(ranges, first) {
		return ranges
	}
	return slices.SortedFunc(slices.Values(ranges), first)
}

// subtract gives what is left of ranges without o.
func subtract(ranges []Range, o Range) (left []Range) {
	for _, r := range ranges {
		if !r.meets(o) {
			left = append(left, r)
			continue
		}
		if r.First < o.First {
			left = append(left, Range{r.First, o.First - 1})
		}
		if o.Last < r.Last {
			left = append(left, Range{o.Last + 1, r.Last})
		}
	}
	return left
}
