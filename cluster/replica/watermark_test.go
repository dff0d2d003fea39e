package replica

import (
	"testing"

	"github.com/ostrodb/ostro/engine/record"
)

// sealed makes bytes with an entry and a seal for each batch.
func sealed(batches ...record.BatchID) []byte {
	var all []byte
	chain := record.NewChain(1)
	for _, n := range batches {
		b := make([]byte, 256)
		end := record.Encode(b, &record.Header{Type: record.TypePut}, []byte("k"), []byte("v"), true)
		chain.PutSeal(b[end:], n, false)
		all = append(all, b[:end+record.SealBytes]...)
	}
	return all
}

func TestTheWatermarkStopsBeforeTheFirstBatchThatIsMissing(t *testing.T) {
	var w watermark
	w.begin(10)
	for _, step := range []struct {
		complete []record.BatchID
		want     record.BatchID
	}{
		{[]record.BatchID{12}, 10},
		{[]record.BatchID{11}, 12},
		{[]record.BatchID{15, 17}, 12},
		{[]record.BatchID{13, 14}, 15},
		{[]record.BatchID{11, 12}, 15}, // Again, as when a copy was replaced.
		{[]record.BatchID{16}, 17},
	} {
		was := w.batch()
		if moved := w.complete(sealed(step.complete...)); moved != (was != step.want) || w.batch() != step.want {
			t.Fatalf("after %d: watermark %d (moved: %v), want %d", step.complete, w.batch(), moved, step.want)
		}
	}
}

func TestTheWatermarkFollowsHeadsThatAreFarApart(t *testing.T) {
	random := seeded(t)
	const batches = 100_000
	var w watermark
	w.begin(0)
	order := make([]record.BatchID, batches)
	for i := range order {
		order[i] = record.BatchID(i + 1)
	}
	// The first batch comes last, the others in any order.
	random.Shuffle(batches-1, func(i, j int) { order[i+1], order[j+1] = order[j+1], order[i+1] })
	order = append(order[1:], order[0])
	for i, n := range order {
		moved := w.complete(sealed(n))
		if last := i == batches-1; moved != last {
			t.Fatalf("batch %d, number %d to arrive: moved is %v", n, i, moved)
		}
	}
	if w.batch() != batches {
		t.Fatalf("watermark %d, want %d", w.batch(), batches)
	}
}

func TestABatchThatArrivedInPartIsNotFound(t *testing.T) {
	b := sealed(1, 2, 3)
	one := uint32(len(b) / 3)
	entry := one - record.SealBytes
	for limit := range uint32(len(b)) + 1 {
		want := seals{end: limit / one * one, last: record.BatchID(limit / one), whole: limit / one * one}
		if limit%one >= entry {
			want.whole += entry
		}
		if found := sealsIn(b, 0, limit); found != want {
			t.Fatalf("limit %d: %+v, want %+v", limit, found, want)
		}
	}
}
