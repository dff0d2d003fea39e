package bench

import (
	"testing"

	"github.com/ostrodb/ostro/bench/workload"
	"github.com/ostrodb/ostro/wire"
)

func TestBatchesHoldTheKeysThatWerePatchedIntoThem(t *testing.T) {
	value := make([]byte, 40)
	workload.FillValue(value, 0, 0)
	mix := workload.Mix{Name: "all", Read: 40, Update: 30, Modify: 30}
	const ops = 5
	ring, err := newBatches(mix, workload.Text30, value, ops, 7)
	if err != nil {
		t.Fatal(err)
	}
	own := ring.inView(77)
	ids := []uint32{1, 22, 333, 4444, 55555}
	own.patch(ops, ids)
	sent := own.bytes[own.slots[ops].from:own.slots[2*ops-1].to]
	typ, body, n, _, err := wire.Next(sent, wire.MaxFrameBytes)
	if err != nil || typ != wire.TypeBatch || n != len(sent) {
		t.Fatalf("%d of %d bytes are a %s frame, %v", n, len(sent), typ, err)
	}
	batch, err := wire.DecodeBatch(body)
	if err != nil || batch.View != 77 || batch.Count != ops {
		t.Fatalf("%+v, %v", batch.Batch, err)
	}
	want, scratch := make([]byte, workload.Text30.Len()), make([]byte, len(value))
	for i := 0; batch.More(); i++ {
		var op wire.Op
		if err := batch.Next(&op); err != nil {
			t.Fatal(err)
		}
		workload.Text30.Put(want, uint64(ids[i]))
		if string(op.Key) != string(want) || op.Tag != uint32(i) {
			t.Errorf("operation %d is %s of %s", op.Tag, op.Code, op.Key)
		}
		if op.Code == wire.OpPut {
			if err := workload.CheckValue(op.Arg, uint64(ids[i]), 0, len(value), scratch); err != nil {
				t.Error(err)
			}
		}
		if writes := own.slots[ops+i].writes; writes != op.Code.Writes() {
			t.Errorf("%s writes: %v", op.Code, writes)
		}
	}
	if _, err := newBatches(workload.Counter, workload.Text30, value, ops, 7); err == nil {
		t.Error("counters were taken")
	}
}

func TestResultsAreCountedHoweverTheyAreCut(t *testing.T) {
	var stream []byte
	for _, frame := range [][]wire.Status{{wire.OK, wire.NotFound}, {wire.OK}, {wire.OK, wire.Moved, wire.OK}} {
		b, start := wire.BeginResults(stream)
		for _, st := range frame {
			b = wire.AppendResult(b, &wire.Result{Status: st, Value: []byte("value")})
		}
		stream = wire.EndResults(b, start, len(frame))
	}
	for size := 1; size <= len(stream); size++ {
		r, done := replies{frames: true}, 0
		for at := 0; at < len(stream); at += size {
			done += r.feed(stream[at:min(at+size, len(stream))])
		}
		if done != 6 || r.nulls != 1 || r.fails != 1 || r.first != "moved value" || r.odd {
			t.Fatalf("in pieces of %d: %d results, %+v", size, done, r)
		}
	}
	stale := replies{frames: true}
	if stale.feed(wire.AppendStale(nil, wire.Stale{})); stale.fails != 1 {
		t.Error("a batch that was rejected went unnoticed")
	}
	odd := replies{frames: true}
	if odd.feed(make([]byte, 16)); !odd.odd {
		t.Error("bytes that are no frame went unnoticed")
	}
}
