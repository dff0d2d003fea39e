package view

import (
	"fmt"
	"math"
	"strconv"

	"github.com/ostrodb/ostro/engine/record"
)

const (
	slotShift = 50
	lastPlace = record.Place(math.MaxUint64)
)

// Range is the places from First to Last, both included: an end beyond the
// last place would not fit a Place. A Range is never empty.
type Range struct{ First, Last record.Place }

// Whole is the placement space.
var Whole = Range{0, lastPlace}

// SlotsRange is all places of the Redis Cluster slots first to last.
func SlotsRange(first, last uint16) Range {
	return Range{record.Place(first) << slotShift, slotEnd(record.Place(last) << slotShift)}
}

// slotStart returns the first place of the slot that p lies in.
func slotStart(p record.Place) record.Place { return p >> slotShift << slotShift }

// slotEnd returns the last place of the slot that p lies in.
func slotEnd(p record.Place) record.Place { return p | (1<<slotShift - 1) }

// Contains tells whether p lies in r.
func (r Range) Contains(p record.Place) bool { return r.First <= p && p <= r.Last }

// Overlaps tells whether a place lies in both.
func (r Range) Overlaps(o Range) bool { return r.First <= o.Last && o.First <= r.Last }

// common is the places of both, which must overlap.
func (r Range) common(o Range) Range { return Range{max(r.First, o.First), min(r.Last, o.Last)} }

// Fraction is r's share of the placement space, from 0 to 1.
func (r Range) Fraction() float64 {
	return math.Ldexp(float64(r.Last-r.First)+1, -64)
}

// halves cuts r in two. It must have two places at least.
func (r Range) halves() (Range, Range) {
	middle := r.First + (r.Last-r.First)/2
	return Range{r.First, middle}, Range{middle + 1, r.Last}
}

// atSlots cuts r at the borders of slots.
func (r Range) atSlots() []Range {
	var parts []Range
	for end := slotEnd(r.First); end < r.Last; end = slotEnd(r.First) {
		parts = append(parts, Range{r.First, end})
		r.First = end + 1
	}
	return append(parts, r)
}

// slotRuns cuts r into the rest of its first slot, whole slots, and the beginning of its last one, as far as there are.
func (r Range) slotRuns() (runs []Range) {
	if r.First != slotStart(r.First) && slotEnd(r.First) < r.Last {
		runs = append(runs, Range{r.First, slotEnd(r.First)})
		r.First = slotEnd(r.First) + 1
	}
	if start := slotStart(r.Last); r.Last != slotEnd(r.Last) && start > r.First {
		runs = append(runs, Range{r.First, start - 1})
		r.First = start
	}
	return append(runs, r)
}

// String returns both ends as 16 hexadecimal digits.
func (r Range) String() string { return fmt.Sprintf("%016x-%016x", uint64(r.First), uint64(r.Last)) }

// MarshalText is String. What nobody could read is not written either.
func (r Range) MarshalText() ([]byte, error) {
	if r.First > r.Last {
		return nil, fmt.Errorf("%q is no range: it ends before it begins", r)
	}
	return []byte(r.String()), nil
}

// UnmarshalText reads what MarshalText wrote, and nothing else.
func (r *Range) UnmarshalText(text []byte) error {
	if len(text) != 33 || text[16] != '-' {
		return fmt.Errorf("%q is no range: want 16 hexadecimal digits, a dash, 16 more", text)
	}
	first, err := strconv.ParseUint(string(text[:16]), 16, 64)
	if err != nil {
		return fmt.Errorf("%q is no range: %w", text, err)
	}
	last, err := strconv.ParseUint(string(text[17:]), 16, 64)
	if err != nil {
		return fmt.Errorf("%q is no range: %w", text, err)
	}
	if first > last {
		return fmt.Errorf("%q is no range: it ends before it begins", text)
	}
	*r = Range{record.Place(first), record.Place(last)}
	return nil
}
