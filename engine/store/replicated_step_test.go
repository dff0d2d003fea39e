package store

import (
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/hlog/hlogtest"
	"github.com/ostrodb/ostro/internal/await"
)

func TestARelocatedRecordIsShownWhileItsNewPlaceIsNotCopied(t *testing.T) {
	copies := hlogtest.New(t, 1)
	b := &bench{t: t, dev: device.NewMemory()}
	b.o = Options{Durability: EverySec, SegmentBytes: 64 << 10, Heads: 4, Now: b.now.Load, Replicator: copies}
	b.st = b.open(b.dev)
	t.Cleanup(copies.Flow)
	for i := range b.ss {
		b.ss[i] = b.session()
	}
	await.True(t, "segments are ready", func() bool { return b.st.log.Spares() > 0 && b.st.log.HasReserve() })
	b.put(0, "k", "v", true)
	seg := b.retire(0)
	await.True(t, "it is copied", func() bool { return b.st.log.AtRest(seg) })
	b.put(0, "other", "v", true)

	copies.Hold()
	if err := b.st.condemn(seg); err != nil {
		t.Fatal(err)
	}
	if b.st.log.Last() <= b.st.log.Copied() {
		t.Fatal("nothing waits to be copied")
	}
	ss := b.ss[1]
	ss.Begin()
	k := ss.Key(0, []byte("k"))
	v, s := ss.Get(&k)
	if s != OK || string(v.Value) != "v" || b.st.log.Stable(v.at) {
		t.Fatalf("%v %q, copied where it is now: %v", s, v.Value, b.st.log.Stable(v.at))
	}
	ticket := ss.SealRound()
	ss.End()
	if !ss.Durable(ticket) {
		t.Error("a reader waits for what the copies have")
	}
	if err := b.st.log.Sync(); err != nil { // Which is not enough for the segment to go.
		t.Fatal(err)
	}
	b.st.buryCondemned()
	await.True(t, "a drop has ended", func() bool { return !b.st.dropping.busy.Load() })
	if !copies.Has(seg.ID) || b.st.log.ByID(seg.ID) != seg {
		t.Error("the copies dropped a segment whose records they have nowhere else")
	}
	copies.Flow()
	await.True(t, "the segment goes", func() bool { return !copies.Has(seg.ID) && b.st.log.ByID(seg.ID) == nil })
}
