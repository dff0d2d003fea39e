package replica

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/await"
)

// onDisk is a closed replica in a file, as fetches find it.
func onDisk(t *testing.T, id record.SegmentID) held {
	t.Helper()
	bytes := make([]byte, 4096)
	for i := range bytes {
		bytes[i] = byte(i) ^ byte(id)
	}
	c := Closing{End: uint32(len(bytes)), Sum: Sum(bytes), Batch: 7}
	path, err := writeReplica(t.TempDir(), 1, id, 1, c, bytes, func() {})
	if err != nil {
		t.Fatal(err)
	}
	r := &replica{log: &copies{id: 1}, segment: id, state: StateClosed, closing: c, path: path}
	return held{info: r.info(), closing: c, replica: r, path: path}
}

// lastingShelf is one that nothing leaves by itself while a test goes on.
func lastingShelf() *shelf { return &shelf{pause: time.Hour} }

func TestHeirsShareWhatOneOfThemRead(t *testing.T) {
	h := onDisk(t, 1)
	s := lastingShelf()
	first, second := h, h
	v := s.borrow(&first, "n1")
	if v.err != nil || Sum(first.bytes) != h.closing.Sum {
		t.Fatal(v.err, "or other bytes")
	}
	if err := os.Remove(h.path); err != nil {
		t.Fatal(err)
	}
	s.giveBack(v)
	w := s.borrow(&second, "n2")
	defer s.giveBack(w)
	if w.err != nil || Sum(second.bytes) != h.closing.Sum {
		t.Fatal("it was read again:", w.err)
	}
}

func TestAShelfIsEmptyAMomentAfterTheLastFetch(t *testing.T) {
	h := onDisk(t, 1)
	s := &shelf{pause: time.Millisecond}
	s.giveBack(s.borrow(&h, "n1"))
	await.True(t, "no segment is kept", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.list) == 0
	})
}

func TestAShelfKeepsFewAndNoneThatCouldNotBeRead(t *testing.T) {
	s := lastingShelf()
	bad := onDisk(t, 99)
	if err := os.WriteFile(bad.path, []byte("damage"), 0o600); err != nil {
		t.Fatal(err)
	}
	v := s.borrow(&bad, "n1")
	if v.err == nil {
		t.Fatal("damage was not noticed")
	}
	s.giveBack(v)
	if len(s.list) != 0 {
		t.Fatal("a volume without bytes is kept")
	}
	var all sync.WaitGroup
	for id := range record.SegmentID(3 * shelfVolumes) {
		h := onDisk(t, id)
		for range 2 {
			all.Go(func() {
				h := h
				v := s.borrow(&h, "n1")
				defer s.giveBack(v)
				if v.err != nil || Sum(h.bytes) != h.closing.Sum {
					t.Errorf("segment %d of %s: %v, or other bytes", id, filepath.Base(h.path), v.err)
				}
			})
		}
	}
	all.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) > shelfVolumes {
		t.Fatalf("%d segments are kept", len(s.list))
	}
}

func TestAVolumeGoesWhenAllHeirsHadItAndItsMemoryIsUsedAgain(t *testing.T) {
	one, two := onDisk(t, 1), onDisk(t, 2)
	s := lastingShelf()
	first := s.borrow(&one, "n1")
	s.giveBack(first)
	if len(s.list) != 1 {
		t.Fatal("it went while others may come")
	}
	again := one
	s.giveBack(s.borrow(&again, "n2"))
	if len(s.list) != 0 {
		t.Fatal("both heirs had it, and it is kept")
	}
	v := s.borrow(&two, "n1")
	defer s.giveBack(v)
	if v.memory != first.memory {
		t.Error("the next one was read to other memory")
	}
	if Sum(v.bytes) != two.closing.Sum {
		t.Error("and it has other bytes")
	}
}

func TestMemoryThatIsTooSmallIsNotUsed(t *testing.T) {
	var m memories
	small := m.take(100)
	m.give(small)
	large := m.take(3 * largePage)
	defer m.clear()
	if large == small || len(large.bytes) < 3*largePage {
		t.Fatalf("%d bytes for %d", len(large.bytes), 3*largePage)
	}
	if got := m.take(1); got != small {
		t.Error("what is large enough was not used again")
	}
	m.give(large)
}
