package migrate

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A source that looks for results for long is heard of long before a target gives it up, though it finds none.
func TestASourceThatFindsNoResultsForLongSaysThatItGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lengths []int
		var longest time.Duration
		last := time.Now()
		p := newParts(func(part []byte) error {
			longest, last = max(longest, time.Since(last)), time.Now()
			lengths = append(lengths, len(part))
			return nil
		})
		for range 60 * 100 {
			time.Sleep(10 * time.Millisecond) // Of the bubble's clock.
			if err := p.advanced(); err != nil {
				t.Fatal(err)
			}
		}
		if longest > silent/5 || len(lengths) < 30 || slices.Max(lengths) != 0 {
			t.Errorf("in a minute it said %d times something, of %d bytes at most, and once nothing for %s", len(lengths), slices.Max(lengths), longest)
		}
	})
}

func TestPartsGoWhenTheyAreFullOrOldAndInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lengths []int
		p := newParts(func(part []byte) error {
			lengths = append(lengths, len(part))
			return nil
		})
		p.add(make([]byte, partBytes-1))
		p.add(make([]byte, 1))
		if len(lengths) > 0 {
			t.Error("a part was sent inside of a guard")
		}
		if err := p.advanced(); err != nil { // It is full.
			t.Fatal(err)
		}
		p.add(make([]byte, 7))
		if err := p.advanced(); err != nil { // It is young.
			t.Fatal(err)
		}
		time.Sleep(signEvery) // Of the bubble's clock.
		if err := p.advanced(); err != nil {
			t.Fatal(err)
		}
		p.add(make([]byte, 3))
		if err := errors.Join(p.flush(), p.flush()); err != nil { // The end, twice.
			t.Fatal(err)
		}
		if want := []int{partBytes, 7, 3}; !slices.Equal(lengths, want) {
			t.Errorf("parts of %d bytes, want %d", lengths, want)
		}
	})
}

func TestASourceWhoseTargetIsGoneLooksForNoMoreResults(t *testing.T) {
	gone := errors.New("gone")
	calls := 0
	p := newParts(func([]byte) error {
		calls++
		return gone
	})
	p.add(make([]byte, partBytes))
	p.add(make([]byte, partBytes))
	if err := p.advanced(); !errors.Is(err, gone) || !errors.Is(p.flush(), gone) || calls != 1 {
		t.Errorf("%v after %d attempts to send", err, calls)
	}
}
