package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// whatToMove is said in one of three ways.
type whatToMove struct {
	slots    string
	ranges   string
	fraction float64
	share    bool // a fraction was named, whatever it is
}

func (w whatToMove) check() error {
	given := 0
	for _, is := range []bool{w.slots != "", w.ranges != "", w.fraction != 0 || w.share} {
		if is {
			given++
		}
	}
	switch {
	case given == 0:
		return usagef("say what to move with one of --slots 0-99,200, --range 40-4f, --fraction 0.5")
	case given > 1:
		return usagef("say what to move in one way: --slots, --range or --fraction")
	case (w.share || w.fraction != 0) && !(w.fraction > 0 && w.fraction <= 1):
		return usagef("--fraction is a part of what the source owns: above 0, up to 1, not %g", w.fraction)
	}
	_, err := w.of(nil)
	return err
}

// of is what is meant, of what the source owns.
func (w whatToMove) of(owned view.Ranges) (view.Ranges, error) {
	switch {
	case w.slots != "":
		return parseSlots(w.slots)
	case w.ranges != "":
		return parseRanges(w.ranges)
	}
	return owned.Share(w.fraction), nil
}

// parseSlots reads slots as 0-99,200.
func parseSlots(text string) (view.Ranges, error) {
	var all []view.Range
	for part := range strings.SplitSeq(text, ",") {
		low, high, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			high = low
		}
		first, err := strconv.ParseUint(low, 10, 16)
		last, err2 := strconv.ParseUint(high, 10, 16)
		switch {
		case err != nil || err2 != nil || first >= record.PlaceSlots || last >= record.PlaceSlots:
			return nil, usagef("--slots: %q is no slot: they go from 0 to %d, as in 0-99,200", part, record.PlaceSlots-1)
		case first > last:
			return nil, usagef("--slots: %q ends before it begins", part)
		}
		all = append(all, view.SlotsRange(uint16(first), uint16(last)))
	}
	return view.RangesOf(all...), nil
}

const placeDigits = 16

// parseRanges reads ranges as 4000-7fff,80: digits that are missing are all there can be.
func parseRanges(text string) (view.Ranges, error) {
	var all []view.Range
	for part := range strings.SplitSeq(text, ",") {
		low, high, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			high = low
		}
		first, err := parsePlace(low, "0")
		if err != nil {
			return nil, err
		}
		last, err := parsePlace(high, "f")
		if err != nil {
			return nil, err
		}
		if first > last {
			return nil, usagef("--range: %q ends before it begins", part)
		}
		all = append(all, view.Range{First: first, Last: last})
	}
	return view.RangesOf(all...), nil
}

func parsePlace(digits, fill string) (record.Place, error) {
	if len(digits) == 0 || len(digits) > placeDigits {
		return 0, usagef("--range: %q is no place: want 1 to %d hexadecimal digits, as in 4000-7fff", digits, placeDigits)
	}
	n, err := strconv.ParseUint(digits+strings.Repeat(fill, placeDigits-len(digits)), 16, 64)
	if err != nil {
		return 0, usagef("--range: %q is no place: want hexadecimal digits, as in 4000-7fff", digits)
	}
	return record.Place(n), nil
}

// slotText names ranges by their slots, for people.
func slotText(ranges view.Ranges) string {
	slots := len(ranges.AtSlots())
	list := slotsOf(ranges)
	if slots == 1 {
		return "slot " + list[0]
	}
	return fmt.Sprintf("%s slots (%s)", thousands(int64(slots)), few(list, 3))
}
