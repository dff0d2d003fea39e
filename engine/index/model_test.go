package index

import (
	"maps"
	"slices"
	"testing"

	"github.com/ostrodb/ostro/engine/record"
	"pgregory.net/rapid"
)

// skew is a way in which places may be unlucky. Crowded ones make long chains,
// which every lookup reads: tests take fewer keys for them.
type skew struct {
	place   func(key uint64) record.Place
	crowded bool
}

var skews = map[string]skew{
	"uniform":          {placeFor, false},
	"one slot":         {func(key uint64) record.Place { return 0x1234<<50 | placeFor(key)>>14 }, false},
	"one prefix":       {func(key uint64) record.Place { return 0xabcd<<48 | placeFor(key)>>16 }, false},
	"all known bits":   {func(key uint64) record.Place { return 0xabcd1234<<32 | placeFor(key)>>32 }, false},
	"tag 0":            {func(key uint64) record.Place { return placeFor(key) &^ (0xffff << 32) }, false},
	"one bucket":       {func(key uint64) record.Place { return placeFor(key)&^bucketMask | 7 }, true},
	"few places":       {func(key uint64) record.Place { return placeFor(key % 5) }, true},
	"one single place": {func(uint64) record.Place { return 42 }, true},
}

// model is what an index should hold. Locked keys have a probe of their own.
type model struct {
	ix     fixture
	place  func(uint64) record.Place
	have   map[uint64]record.Address
	locked map[uint64]*Probe
	taken  map[record.Place]uint64 // known bits with a placeholder, and whose
}

func (m *model) check(t *rapid.T, key uint64) {
	a, ok := m.ix.get(m.place(key), key)
	if want, there := m.have[key]; ok != there || a != want {
		t.Fatalf("key %d: address %v, found %v; want %v, %v", key, a, ok, want, there)
	}
}

func (m *model) put(t *rapid.T, key, version uint64) {
	_, held := m.locked[key]
	if held {
		return
	}
	_, there := m.have[key]
	a := addressFor(key, version)
	if m.ix.put(m.place(key), key, a) == there {
		t.Fatalf("put of key %d, present %v, did the other thing", key, there)
	}
	m.have[key] = a
}

func (m *model) remove(t *rapid.T, key uint64) {
	if _, held := m.locked[key]; held {
		return
	}
	_, there := m.have[key]
	if m.ix.remove(m.place(key), key) != there {
		t.Fatalf("remove of key %d, present %v, did the other thing", key, there)
	}
	delete(m.have, key)
}

// lock locks a key's entry, with a placeholder if there is none.
func (m *model) lock(t *rapid.T, key uint64) {
	if _, held := m.locked[key]; held {
		return
	}
	pr := &Probe{}
	if m.ix.find(pr, m.place(key), key) {
		if !m.ix.Lock(pr) || !pr.Locked() {
			t.Fatalf("key %d does not lock", key)
		}
		m.locked[key] = pr
		return
	}
	known := Known(m.place(key))
	if _, other := m.taken[known]; other {
		return // as a transaction would wait
	}
	for m.ix.InsertLocked(pr, 0) != Inserted {
		m.ix.find(pr, m.place(key), key)
	}
	m.locked[key], m.taken[known] = pr, key
}

func (m *model) unlock(t *rapid.T, key, version uint64) {
	pr, held := m.locked[key]
	if !held {
		return
	}
	switch version % 4 {
	case 0:
		m.ix.Unlock(pr)
	case 1:
		m.ix.RemoveLocked(pr)
		delete(m.have, key)
	case 2:
		m.ix.UpdateLocked(pr, addressFor(key, version), false)
		m.have[key] = addressFor(key, version)
	case 3:
		m.ix.UpdateLocked(pr, addressFor(key, version), true)
		m.have[key] = addressFor(key, version)
		m.dropPlaceholder(key)
		return // still locked
	}
	delete(m.locked, key)
	m.dropPlaceholder(key)
}

func (m *model) dropPlaceholder(key uint64) {
	known := Known(m.place(key))
	if owner, ok := m.taken[known]; ok && owner == key {
		delete(m.taken, known)
	}
}

// blocked: a locked entry refuses everybody else.
func (m *model) blocked(t *rapid.T, key uint64) {
	if _, held := m.locked[key]; !held || m.have[key] == 0 {
		return
	}
	var pr Probe
	if !m.ix.find(&pr, m.place(key), key) || !pr.Locked() {
		t.Fatalf("key %d should be there, locked", key)
	}
	if m.ix.Update(&pr, addressFor(key, 9)) || m.ix.Remove(&pr) || m.ix.Lock(&pr) {
		t.Fatalf("locked key %d was changed by another", key)
	}
}

func (m *model) whole(t *rapid.T) {
	m.ix.guard.Leave()
	defer m.ix.guard.Enter()
	seen := map[uint64]record.Address{}
	err := m.ix.Dump(func(known record.Place, a record.Address) error {
		key := keyAt(a)
		if _, twice := seen[key]; twice {
			t.Fatalf("key %d comes twice", key)
		}
		if known != Known(m.place(key)) {
			t.Fatalf("key %d comes with known bits %#x, want %#x", key, known, Known(m.place(key)))
		}
		seen[key] = a
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(seen) != len(m.have) {
		t.Fatalf("%d entries, want %d", len(seen), len(m.have))
	}
	for key, a := range m.have {
		if seen[key] != a {
			t.Fatalf("key %d has address %v, want %v", key, seen[key], a)
		}
	}
	if got, want := m.ix.Len(), int64(len(m.have)+len(m.taken)); got != want {
		t.Fatalf("Len is %d, want %d", got, want)
	}
}

// many puts a run of keys, so that the random walk meets splits.
func (m *model) many(t *rapid.T, first, n uint64) {
	for key := first; key < first+n; key++ {
		m.put(t, key, key)
	}
	m.ix.guard.Refresh()
}

func (m *model) removeMany(t *rapid.T, first, n uint64) {
	for key := first; key < first+n; key++ {
		m.remove(t, key)
	}
}

func TestIndexActsLikeAMapUnderEverySkew(t *testing.T) {
	names := slices.Sorted(maps.Keys(skews))
	rapid.Check(t, func(rt *rapid.T) {
		ix := open(t, Options{})
		defer ix.close(t)
		skew := skews[rapid.SampledFrom(names).Draw(rt, "skew")]
		m := &model{
			ix: ix, place: skew.place,
			have:   map[uint64]record.Address{},
			locked: map[uint64]*Probe{}, taken: map[record.Place]uint64{},
		}
		bound := size(5000)
		if skew.crowded {
			bound = size(1600)
		}
		key := rapid.Uint64Range(0, bound)
		version := rapid.Uint64Range(0, 1000)
		rt.Repeat(map[string]func(*rapid.T){
			"put":        func(t *rapid.T) { m.put(t, key.Draw(t, "key"), version.Draw(t, "version")) },
			"get":        func(t *rapid.T) { m.check(t, key.Draw(t, "key")) },
			"remove":     func(t *rapid.T) { m.remove(t, key.Draw(t, "key")) },
			"lock":       func(t *rapid.T) { m.lock(t, key.Draw(t, "key")) },
			"unlock":     func(t *rapid.T) { m.unlock(t, key.Draw(t, "key"), version.Draw(t, "version")) },
			"blocked":    func(t *rapid.T) { m.blocked(t, key.Draw(t, "key")) },
			"many":       func(t *rapid.T) { m.many(t, key.Draw(t, "first"), bound/4) },
			"removeMany": func(t *rapid.T) { m.removeMany(t, key.Draw(t, "first"), bound/4) },
			"whole":      func(t *rapid.T) { m.whole(t) },
		})
	})
}
