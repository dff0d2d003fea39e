package group

import (
	"testing"

	"github.com/ostrodb/ostro/fabric"
)

// No test from outside can tell whether bytes were flushed, short of the loss of power.
func TestDurableOperationsFlushWhatTheyChangeOnEachReplica(t *testing.T) {
	l := &line{client: &client{persist: fabric.Persist, offers: []Offer{
		{Data: fabric.RegionInfo{Base: 1000, Bytes: 500}}, {Data: fabric.RegionInfo{Base: 7000, Bytes: 500}},
	}}}
	for i, base := range []uint64{1000, 7000} {
		for _, k := range []kind{gWrite, gCAS, gCopy, gFlush} {
			w := l.flush(i, &operation{kind: k, durable: true, off: 40, src: 100, n: 8})
			if w.Op != fabric.OpFlush || w.Flags&fabric.Persist == 0 || w.Remote.Addr != base+40 || w.Local[0].Bytes != 8 {
				t.Errorf("replica %d, kind %d: %+v", i, k, w)
			}
		}
		if w := l.flush(i, &operation{kind: gWrite, off: 40, n: 8}); w.Op != fabric.OpNop {
			t.Errorf("replica %d flushes what nobody asked for: %v", i, w.Op)
		}
	}
}
