package view

import (
	"errors"
	"fmt"

	"github.com/ostrodb/ostro/engine/record"
)

// Validate checks every promise of this package: of after alone, and of the step from
// before to after, however many transitions lie between. A zero before
// promises nothing.
func Validate(before, after Map) error {
	if err := after.covers(); err != nil {
		return err
	}
	for _, s := range after.spans {
		if after.views[s.Owner] == 0 {
			return fmt.Errorf("%s owns %s and has no view", s.Owner, s.Range)
		}
	}
	for _, n := range before.Nodes() {
		switch was, is := before.views[n], after.views[n]; {
		case is < was:
			return fmt.Errorf("the view of %s fell from %d to %d", n, was, is)
		case is == was && !before.Ranges(n).Equal(after.Ranges(n)):
			return fmt.Errorf("the ranges of %s changed and its view stayed %d", n, is)
		}
	}
	return nil
}

// covers checks that spans hold every place once, and that nodes have names
// and numbers.
func (m Map) covers() error {
	next := record.Place(0)
	for i, s := range m.spans {
		switch {
		case i > 0 && next == 0:
			return fmt.Errorf("%s lies beyond the last place", s.Range)
		case s.Range.First > next:
			return fmt.Errorf("nobody owns %s", Range{next, s.Range.First - 1})
		case s.Range.First < next:
			return fmt.Errorf("%016x has two owners, one of them %s", uint64(s.Range.First), s.Owner)
		case s.Range.Last < s.Range.First:
			return fmt.Errorf("%s ends before it begins", s.Range)
		case i > 0 && m.spans[i-1].Owner == s.Owner:
			return fmt.Errorf("%s is cut in two at %016x", s.Owner, uint64(next))
		}
		next = s.Range.Last + 1
	}
	switch {
	case len(m.spans) == 0:
		return errors.New("nobody owns anything")
	case next != 0:
		return fmt.Errorf("nobody owns %s", Range{next, lastPlace})
	}
	for _, n := range m.Nodes() {
		if err := n.Check(); err != nil {
			return err
		}
		if m.views[n] == 0 {
			return fmt.Errorf("%s has view 0: views begin at 1", n)
		}
	}
	return nil
}
