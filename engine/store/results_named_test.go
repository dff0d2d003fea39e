package store

import (
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/record"
)

// A node that sent such a thing would have this one end at each start.
func TestWhatOnlySeemsToBeTheResultOfAnOperationIsPassedOver(t *testing.T) {
	dev := device.NewMemory()
	t.Cleanup(dev.Close)
	o := Options{Device: dev, Durability: EverySec, Cluster: true, SegmentBytes: 16 << 10}
	st, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	im, err := st.NewImporter(ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := im.NewWorker()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"short", "as long as the name of a"} {
		for _, as := range []record.Type{record.TypePut, record.TypeTombstone} {
			w.mustImport(t, entryOf(record.Header{Type: as, Version: 5, Table: completionTable}, key, "12345678"))
		}
	}
	if s := im.Stats(); s.Taken+s.Tombstones != 0 {
		t.Errorf("some of them were taken: %+v", s)
	}
	if err := im.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.Device = dev.Crash()
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if st, err = Open(o); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

// A client's value may look like anything, and a peer may say that it goes on there.
func TestAPullFromWithinAValueThatSeemsToBeTheResultOfAnOperationEnds(t *testing.T) {
	st, err := Open(Options{Device: device.NewMemory(), Durability: EverySec, Cluster: true, SegmentBytes: 16 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	ss, err := st.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer ss.Close()
	ss.Begin()
	k := ss.Key(0, []byte("12345678"))
	seems := entryOf(record.Header{Type: record.TypePut, Version: 5, Table: completionTable}, "short", "v")
	if s := ss.Put(&k, Write{Value: seems}, nil); s != OK {
		t.Fatal(s)
	}
	ss.Seal()
	ss.End()
	segs := st.log.Cut()
	for _, s := range segs {
		from, err := st.ReadSegment(s.ID)
		if err != nil {
			t.Fatal(err)
		}
		for off := uint64(0); off < uint64(s.End()); off += 8 {
			ss.Begin()
			ss.PullSegment(from, []Range{wholeRange}, PullCursor{At: off}, 1<<20, func([]byte) {}, nil)
			ss.End()
		}
	}
}
