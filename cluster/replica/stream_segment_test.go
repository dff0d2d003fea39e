package replica

import (
	"hash/crc32"
	"testing"

	"github.com/ostrodb/ostro/engine/record"
)

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

func TestASegmentThatArrivesInPiecesIsCountedAsIfItCameAtOnce(t *testing.T) {
	memory := append(sealed(1, 2, 3), longBatch(4, 20)...)
	end := uint32(len(memory))
	for _, piece := range []uint32{1, 7, 64, 100, 1000, end} {
		g := newOpenSegment(1, memory)
		copied := &stream{seg: g}
		g.copies.Store(&[]*stream{copied})
		g.end.Store(end)
		g.sealed.Store(end)
		var w watermark
		w.begin(0)
		var finished bool
		for to := uint32(0); to < end; {
			to = min(to+piece, end)
			copied.done.Store(to)
			if g.passed > to {
				t.Fatalf("pieces of %d: %d bytes are there, and %d were passed", piece, to, g.passed)
			}
			_, finished = g.count(&w)
		}
		want := Closing{End: end, Batch: 4, Sum: crc32.Checksum(memory, castagnoli)}
		if got := g.closing(); !finished || got != want || w.batch() != 4 {
			t.Errorf("pieces of %d: finished %v, %+v, want %+v; watermark %d", piece, finished, got, want, w.batch())
		}
	}
}

// Each look at such a batch began at its first entry once, and there was one for every piece of it.
func TestTheNextLookAtALongBatchBeginsWhereTheLastOneEnded(t *testing.T) {
	memory := longBatch(1, 20)
	end := uint32(len(memory))
	entry := (end - record.SealBytes) / 20
	g := newOpenSegment(1, memory)
	copied := &stream{seg: g}
	g.copies.Store(&[]*stream{copied})
	g.sealed.Store(end)
	var w watermark
	w.begin(0)
	for n := range uint32(20) {
		copied.done.Store(n*entry + entry/2)
		if g.count(&w); g.passed != n*entry || g.counted.Load() != 0 {
			t.Fatalf("%d entries and a half are there: %d bytes of entries of %d were passed, %d counted", n, g.passed, entry, g.counted.Load())
		}
	}
}

// longBatch is a batch of so many entries.
func longBatch(n record.BatchID, entries int) (b []byte) {
	for range entries {
		one := make([]byte, 256)
		b = append(b, one[:record.Encode(one, &record.Header{Type: record.TypePut}, []byte("key"), []byte("value"), true)]...)
	}
	seal := make([]byte, record.SealBytes)
	chain := record.NewChain(1)
	chain.PutSeal(seal, n, false)
	return append(b, seal...)
}
