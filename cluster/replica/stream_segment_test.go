package replica

import "testing"

// A head says first where a segment ends, and then that all up to there is sealed. Who looks in
// between, with all copies complete so far, must not take what was sealed before for the whole.
func TestASegmentIsFinishedWithItsClosingSealAndNotBefore(t *testing.T) {
	memory := sealed(1, 2)
	before, end := uint32(len(sealed(1))), uint32(len(memory))
	g := newOpenSegment(1, memory)
	var w watermark
	w.begin(0)
	g.sealed.Store(before)
	g.end.Store(end)
	if moved, finished := g.count(&w); !moved || finished {
		t.Fatalf("before its closing seal: moved %v, finished %v", moved, finished)
	}
	g.sealed.Store(end)
	if moved, finished := g.count(&w); !moved || !finished || g.closing().End != end || w.batch() != 2 {
		t.Fatalf("with its closing seal: moved %v, finished %v, %+v, watermark %d", moved, finished, g.closing(), w.batch())
	}
}
