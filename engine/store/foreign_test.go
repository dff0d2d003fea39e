package store

import (
	"slices"
	"testing"
)

func noteOf(seq uint64, until int64) foreignResult {
	return foreignResult{keptResult{id: OpID{1, seq}}, until}
}

// Notes are given as long as their results live, and their memory comes back after that.
func TestNotesOfResultsGoWhenTheirTimeIsOver(t *testing.T) {
	const notes = 3*pageForeign + pageForeign/2
	var cs clients
	for n := range notes {
		cs.foreign.note(noteOf(uint64(n), int64(1+n)))
	}
	known := func(now int64) (n int) {
		for _, page := range cs.foreign.list() {
			n += len(cs.keptForeign(page, []Range{wholeRange}, now))
		}
		return n
	}
	for _, now := range []int64{0, 1, pageForeign - 1, pageForeign, 2*pageForeign + 7, notes - 1, notes} {
		cs.sweep(now)
		if got, want := known(now), notes-int(now); got != want {
			t.Errorf("at %d %d results are known, want %d", now, got, want)
		}
		if got, want := len(cs.foreign.pages), (notes-1)/pageForeign+1-int(now)/pageForeign; now < notes && got != want {
			t.Errorf("at %d there are %d pages, want %d", now, got, want)
		}
	}
	if cs.foreign.pages != nil {
		t.Errorf("%d pages are left", len(cs.foreign.pages))
	}
}

// Who reads notes while others come sees all that were there.
func TestNotesThatWereListedStayAsTheyAre(t *testing.T) {
	var f foreign
	f.note(noteOf(1, 10))
	before := f.list()
	f.note(noteOf(2, 10))
	f.sweep(10)
	f.note(noteOf(3, 20))
	if got := before[0].notes; !slices.Equal(got, []foreignResult{noteOf(1, 10)}) {
		t.Errorf("they are %v now", got)
	}
}

// More results than there may be notes of are not forgotten: it is known until when there may be such.
func TestResultsWithoutRoomForANoteAreKnownToBeThere(t *testing.T) {
	var f foreign
	full := foreignPage{5, make([]foreignResult, pageForeign)}
	f.pages = slices.Repeat([]foreignPage{full}, mostForeign/pageForeign)
	if f.note(noteOf(1, 9)); f.untold.Load() != 9 {
		t.Errorf("there may be such until %d", f.untold.Load())
	}
	f.note(noteOf(2, 7))
	if f.untold.Load() != 9 || len(f.pages) != mostForeign/pageForeign {
		t.Errorf("there may be such until %d, and there are %d pages", f.untold.Load(), len(f.pages))
	}
	f.sweep(5)
	if f.note(noteOf(3, 11)); f.untold.Load() != 9 || len(f.pages) != 1 {
		t.Errorf("there is room again, and there may be such until %d; %d pages", f.untold.Load(), len(f.pages))
	}
}

// What its client has the answer of is not given: this process would have dropped it if it had written it.
func TestAnsweredResultsOfOthersAreNotGiven(t *testing.T) {
	var cs clients
	for seq := range uint64(10) {
		cs.foreign.note(noteOf(seq, 100))
	}
	c := cs.heard(1, 100, nil)
	c.mu.Unlock()
	c.answered.Store(7)
	kept := cs.keptForeign(cs.foreign.list()[0], []Range{wholeRange}, 0)
	if len(kept) != 3 || kept[0].id.Seq != 7 {
		t.Errorf("%v are given", kept)
	}
}
