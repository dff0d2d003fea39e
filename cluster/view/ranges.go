package view

import (
	"cmp"
	"encoding/json"
	"slices"
	"sort"
	"strings"

	"github.com/ostrodb/ostro/engine/record"
)

// Ranges is a set of places. Its ranges are sorted, disjoint, and as few as can
// be: none begins where another ends. So equal sets are equal slices. The
// zero Ranges is empty. Ranges are never changed in place.
type Ranges []Range

// RangesOf is the set of all places of rs, in whatever order and however they overlap.
func RangesOf(rs ...Range) Ranges {
	sorted := slices.Clone(rs)
	slices.SortFunc(sorted, func(a, b Range) int { return cmp.Compare(a.First, b.First) })
	var set Ranges
	for _, r := range sorted {
		set = set.grown(r)
	}
	return set
}

// grown is the set with r, which begins at or after the set's last range, at its end.
func (s Ranges) grown(r Range) Ranges {
	if n := len(s); n > 0 && (s[n-1].Last == lastPlace || r.First <= s[n-1].Last+1) {
		s[n-1].Last = max(s[n-1].Last, r.Last)
		return s
	}
	return append(s, r)
}

// Union is the places of either.
func (s Ranges) Union(o Ranges) Ranges { return RangesOf(slices.Concat(s, o)...) }

// Intersect is the places of both.
func (s Ranges) Intersect(o Ranges) Ranges {
	var both Ranges
	for i, j := 0, 0; i < len(s) && j < len(o); {
		if s[i].Overlaps(o[j]) {
			both = append(both, s[i].common(o[j]))
		}
		if s[i].Last < o[j].Last {
			i++
		} else {
			j++
		}
	}
	return both
}

// Subtract is the places of s that are not in o.
func (s Ranges) Subtract(o Ranges) Ranges { return s.Intersect(o.complement()) }

// complement is all other places.
func (s Ranges) complement() Ranges {
	var gaps Ranges
	next := record.Place(0)
	for _, r := range s {
		if r.First > next {
			gaps = append(gaps, Range{next, r.First - 1})
		}
		if r.Last == lastPlace {
			return gaps
		}
		next = r.Last + 1
	}
	return append(gaps, Range{next, lastPlace})
}

// Contains tells whether p is in the set.
func (s Ranges) Contains(p record.Place) bool {
	i := sort.Search(len(s), func(i int) bool { return s[i].Last >= p })
	return i < len(s) && s[i].First <= p
}

// Covers tells whether all of o is in the set: each of its ranges then lies in one of the set's.
func (s Ranges) Covers(o Ranges) bool {
	return !slices.ContainsFunc(o, func(r Range) bool {
		near := s.near(r)
		return len(near) != 1 || near[0].First > r.First || near[0].Last < r.Last
	})
}

// near are the ranges of the set that overlap r.
func (s Ranges) near(r Range) Ranges {
	from := sort.Search(len(s), func(i int) bool { return s[i].Last >= r.First })
	to := sort.Search(len(s), func(i int) bool { return s[i].First > r.Last })
	return s[from:to]
}

// Equal tells whether both are the same places.
func (s Ranges) Equal(o Ranges) bool { return slices.Equal(s, o) }

// Fraction is the set's share of the placement space, from 0 to 1.
func (s Ranges) Fraction() float64 {
	sum := 0.0
	for _, r := range s {
		sum += r.Fraction()
	}
	return sum
}

// AtSlots cuts the set at the borders of slots: the parts together are the
// set, and none lies in two slots.
func (s Ranges) AtSlots() []Range {
	var parts []Range
	for _, r := range s {
		parts = append(parts, r.atSlots()...)
	}
	return parts
}

// Divide deals the set out in n parts of about equal size, each as contiguous as
// can be. It cuts at the borders of slots only: commands with several keys of a slot
// need all of it at one node, and so do tools that move slots. A set of fewer than n
// slots leaves parts empty.
func (s Ranges) Divide(n int) []Ranges {
	pieces := s.AtSlots()
	parts := make([]Ranges, n)
	for i := range parts {
		parts[i] = RangesOf(pieces[i*len(pieces)/n : (i+1)*len(pieces)/n]...)
	}
	return parts
}

// String returns the ranges, separated by commas.
func (s Ranges) String() string {
	parts := make([]string, len(s))
	for i, r := range s {
		parts[i] = r.String()
	}
	return strings.Join(parts, ",")
}

// UnmarshalJSON reads ranges in any order and of any overlap into a proper set.
func (s *Ranges) UnmarshalJSON(text []byte) error {
	var rs []Range
	if err := json.Unmarshal(text, &rs); err != nil {
		return err
	}
	*s = RangesOf(rs...)
	return nil
}
