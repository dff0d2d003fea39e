package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// segmentsOf gives what a scan accepts of a device's segments.
func segmentsOf(t testing.TB, dev *device.Memory) (all [][]byte) {
	t.Helper()
	ids, err := dev.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		f, err := dev.Open(id)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, f.Size())
		f.ReadAt(b, 0)
		f.Close()
		ext, err := record.Scan(b, id)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b[:ext.End])
	}
	return all
}

// importAll feeds segments to an importer, in parallel and in random order.
func importAll(t testing.TB, im *store.Importer, segments [][]byte, workers int, rng *rand.Rand) {
	t.Helper()
	order := rng.Perm(len(segments))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		w, err := im.NewWorker()
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			for {
				n := int(next.Add(1)) - 1
				if n >= len(order) {
					return
				}
				if err := w.Import(t.Context(), segments[order[n]]); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func importer(t testing.TB, st *store.Store, owns func(record.Place) bool) *store.Importer {
	t.Helper()
	im, err := st.NewImporter(store.ImportOptions{Owns: owns})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(im.Abort)
	return im
}

func finish(t testing.TB, im *store.Importer) {
	t.Helper()
	if err := im.Finish(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// estate is a store that is written to at random, and what it must hold.
type estate struct {
	t       testing.TB
	rng     *rand.Rand
	clock   *atomic.Int64
	expires bool
	dev     *device.Memory
	st      *store.Store
	ss      [3]*store.Session
	want    [estateDBs]map[string]thing
}

const (
	estateDBs  = 2
	estateKeys = 48
)

func newEstate(t testing.TB, rng *rand.Rand, expires bool) *estate {
	return newEstateWith(t, rng, expires, 0)
}

// newEstateWith is newEstate with a memory limit.
func newEstateWith(t testing.TB, rng *rand.Rand, expires bool, memory int64) *estate {
	e := &estate{t: t, rng: rng, clock: new(atomic.Int64), expires: expires, dev: device.NewMemory()}
	e.clock.Store(1_000_000)
	t.Cleanup(e.dev.Close)
	e.st = open(t, store.Options{
		Device: e.dev, Durability: store.EverySec, SegmentBytes: 4 << 10, Heads: 2, Databases: estateDBs, Now: e.clock.Load, Cluster: true,
		MemoryBytes: memory,
	})
	for i := range e.ss {
		e.ss[i] = session(t, e.st)
	}
	for db := range e.want {
		e.want[db] = map[string]thing{}
	}
	return e
}

// live does as many random things.
func (e *estate) live(steps int) {
	e.t.Helper()
	for range steps {
		ss := e.ss[e.rng.IntN(len(e.ss))]
		db, name := e.rng.IntN(estateDBs), fmt.Sprintf("key:%d", e.rng.IntN(estateKeys))
		k := ss.Key(db, []byte(name))
		var st store.Status
		switch r := e.rng.IntN(20); {
		case r < 7:
			st = attempt(ss, func() store.Status { return ss.Delete(&k, nil) })
			if st == store.NotFound {
				st = store.OK
			}
			delete(e.want[db], name)
		case r == 7:
			e.clock.Add(int64(e.rng.IntN(20)))
		default:
			v := e.thing()
			st = attempt(ss, func() store.Status { return ss.Put(&k, v.write(), nil) })
			e.want[db][name] = v
		}
		if st != store.OK {
			e.t.Fatalf("%s: %v %v", name, st, ss.Err())
		}
	}
}

func (e *estate) thing() thing {
	sizes := []int{0, 20, 40, 100, 130, 400, 1500}
	v := thing{value: make([]byte, sizes[e.rng.IntN(len(sizes))]), kind: record.Kind(e.rng.IntN(6))}
	for i := range v.value {
		v.value[i] = byte(e.rng.Uint32())
	}
	if e.expires && e.rng.IntN(3) == 0 {
		v.expire = e.clock.Load() + int64(e.rng.IntN(60)) + 1
	}
	return v
}

// die gives the log as a death of the process leaves it.
func (e *estate) die() [][]byte {
	clone := e.dev.Crash()
	defer clone.Close()
	return segmentsOf(e.t, clone)
}

// at is what a key must be.
func (e *estate) at(db int, name string) (thing, bool) {
	v, ok := e.want[db][name]
	if ok && v.expire != 0 && v.expire <= e.clock.Load() {
		return thing{}, false
	}
	return v, ok
}

// names are all that a key of the database was ever called.
func (e *estate) names(db int) map[string]struct{} {
	all := map[string]struct{}{}
	for n := range estateKeys {
		all[fmt.Sprintf("key:%d", n)] = struct{}{}
	}
	for name := range e.want[db] {
		all[name] = struct{}{}
	}
	return all
}

// compare compares all keys of an heir that owns what owns says.
func (e *estate) compare(what string, st *store.Store, owns func(record.Place) bool) {
	e.t.Helper()
	ss, err := st.NewSession()
	if err != nil {
		e.t.Fatal(err)
	}
	defer ss.Close()
	for db := range e.want {
		there := 0
		for name := range e.names(db) {
			want, ok := e.at(db, name)
			k := ss.Key(db, []byte(name))
			ok = ok && owns(k.Place)
			there += b2i(ok)
			s := &subject{}
			if err := s.look(ss, db, name, want, ok); err != nil {
				e.t.Fatalf("%s: database %d: %v", what, db, err)
			}
		}
		if seen := scanned(e.t, ss, db); len(seen) != there {
			e.t.Fatalf("%s: a scan of database %d shows %d keys, want %d: %v", what, db, len(seen), there, seen)
		}
		if keys, _ := st.Count(db); !e.expires && keys != int64(there) {
			e.t.Fatalf("%s: database %d counts %d keys, want %d", what, db, keys, there)
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func everywhere(record.Place) bool { return true }

// heirConfigs are stores that may import.
func heirConfigs() map[string]store.Options {
	const kib = 1 << 10
	return map[string]store.Options{
		"memory":           {SegmentBytes: 4 * kib},
		"checkpoint":       {SegmentBytes: 4 * kib, Durability: store.Checkpoint},
		"everysec":         {SegmentBytes: 4 * kib, Durability: store.EverySec},
		"everysec/spill":   {SegmentBytes: 4 * kib, Durability: store.EverySec, MemoryBytes: 64 * kib},
		"always/spill":     {SegmentBytes: 4 * kib, Durability: store.Always, MemoryBytes: 64 * kib},
		"checkpoint/spill": {SegmentBytes: 4 * kib, Durability: store.Checkpoint, MemoryBytes: 64 * kib},
	}
}

// heirOptions completes them for an heir of e.
func (e *estate) heirOptions(o store.Options) (store.Options, *device.Memory) {
	o.Heads, o.Databases, o.Now, o.Cluster = 2, estateDBs, e.clock.Load, true
	if o.Durability == store.None {
		return o, nil
	}
	dev := device.NewMemory()
	e.t.Cleanup(dev.Close)
	o.Device = dev
	return o, dev
}

func forHeirs(t *testing.T, f func(*testing.T, store.Options, *rand.Rand)) {
	for name, o := range heirConfigs() {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seedOf(t), 7))
			for n := range max(scale(4), 2) {
				t.Run(fmt.Sprint(n), func(t *testing.T) { f(t, o, rng) }) // Each closes what it opened.
			}
		})
	}
}

func TestAnHeirHoldsWhatTheDeadOneHeld(t *testing.T) {
	forHeirs(t, func(t *testing.T, o store.Options, rng *rand.Rand) {
		e := newEstate(t, rng, rng.IntN(2) == 0)
		e.live(rng.IntN(600))
		log := e.die()
		o, dev := e.heirOptions(o)
		st, err := store.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		im := importer(t, st, nil)
		importAll(t, im, log, 1+rng.IntN(3), rng)
		finish(t, im)
		e.compare("imported", st, everywhere)
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		if dev == nil {
			return
		}
		e.compare("opened again", open(t, o), everywhere)
	})
}

func TestSeveralHeirsDivideWhatTheDeadOneHeld(t *testing.T) {
	forHeirs(t, func(t *testing.T, o store.Options, rng *rand.Rand) {
		e := newEstate(t, rng, rng.IntN(2) == 0)
		e.live(rng.IntN(600))
		log := e.die()
		border := record.Place(rng.Uint64())
		for _, owns := range []func(record.Place) bool{
			func(p record.Place) bool { return p < border },
			func(p record.Place) bool { return p >= border },
		} {
			o, _ := e.heirOptions(o)
			st := open(t, o)
			im := importer(t, st, owns)
			importAll(t, im, log, 2, rng)
			finish(t, im)
			e.compare("a part", st, owns)
		}
	})
}

// some gives a random part of segments.
func some(segments [][]byte, rng *rand.Rand) (part [][]byte) {
	for _, s := range segments {
		if rng.IntN(2) == 0 {
			part = append(part, s)
		}
	}
	return part
}

func TestAnImportThatWasBrokenOffIsBegunAgain(t *testing.T) {
	forHeirs(t, func(t *testing.T, o store.Options, rng *rand.Rand) {
		e := newEstate(t, rng, rng.IntN(2) == 0)
		e.live(rng.IntN(600))
		log := e.die()
		o, dev := e.heirOptions(o)
		st, err := store.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		for range 1 + rng.IntN(3) {
			im := importer(t, st, nil)
			importAll(t, im, some(log, rng), 2, rng)
			if rng.IntN(3) == 0 { // All was fed, but it was to be shown only then.
				importAll(t, im, log, 2, rng)
				finish(t, im)
			}
			im.Abort()
			if dev != nil && rng.IntN(2) == 0 {
				clone := dev.Crash()
				t.Cleanup(clone.Close)
				if err := errors.Join(st.CloseUnsaved()); err != nil {
					t.Fatal(err)
				}
				o.Device, dev = clone, clone
				if st, err = store.Open(o); err != nil {
					t.Fatal(err)
				}
			}
			e.clock.Add(int64(rng.IntN(20)))
		}
		im := importer(t, st, nil)
		importAll(t, im, log, 2, rng)
		finish(t, im)
		e.compare("imported again", st, everywhere)
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		if dev != nil {
			e.compare("opened again", open(t, o), everywhere)
		}
	})
}

func TestAnHeirOfADeadHeirTakesBothLogs(t *testing.T) {
	forHeirs(t, func(t *testing.T, o store.Options, rng *rand.Rand) {
		e := newEstate(t, rng, rng.IntN(2) == 0)
		e.live(rng.IntN(600))
		log := e.die()
		first, dev := e.heirOptions(store.Options{SegmentBytes: 4 << 10, Durability: store.EverySec})
		im := importer(t, open(t, first), nil)
		importAll(t, im, some(log, rng), 2, rng)
		if rng.IntN(2) == 0 {
			finish(t, im)
		}
		clone := dev.Crash()
		both := append(segmentsOf(t, clone), log...)
		clone.Close()

		o, _ = e.heirOptions(o)
		st := open(t, o)
		im = importer(t, st, nil)
		importAll(t, im, both, 3, rng)
		finish(t, im)
		e.compare("of both logs", st, everywhere)
	})
}

func TestAnHeirServesWhileItImports(t *testing.T) {
	t.Parallel()
	forHeirs(t, func(t *testing.T, o store.Options, rng *rand.Rand) {
		e := newEstate(t, rng, rng.IntN(2) == 0)
		e.live(300 + rng.IntN(300))
		log := e.die()
		o, _ = e.heirOptions(o)
		o.Databases++ // The last one is served.
		st := open(t, o)
		own := make([]map[string][]byte, 2)
		var stop atomic.Bool
		var wg sync.WaitGroup
		for n := range own {
			own[n] = map[string][]byte{}
			ss, rng := session(t, st), rand.New(rand.NewPCG(rng.Uint64(), 1))
			wg.Go(func() {
				for range 1000 { // No more: the cleaner may be far behind.
					if stop.Load() {
						return
					}
					serveOwn(t, ss, own[n], n, rng)
				}
			})
		}
		im := importer(t, st, nil)
		importAll(t, im, log, 2, rng)
		finish(t, im)
		stop.Store(true)
		wg.Wait()
		e.compare("beside other work", st, everywhere)
		ss := session(t, st)
		for n := range own {
			for name, want := range own[n] {
				if got := readKey(t, ss, estateDBs, []byte(name)); !bytes.Equal(got, want) {
					t.Fatalf("%s is %s, want %s", name, brief(got), brief(want))
				}
			}
		}
	})
}

// serveOwn does something with a key that is not imported.
func serveOwn(t *testing.T, ss *store.Session, want map[string][]byte, n int, rng *rand.Rand) {
	name := fmt.Sprintf("own:%d:%d", n, rng.IntN(20))
	k := ss.Key(estateDBs, []byte(name))
	if rng.IntN(3) == 0 {
		attempt(ss, func() store.Status { return ss.Delete(&k, nil) })
		delete(want, name)
		return
	}
	value := bytes.Repeat([]byte{byte(rng.Uint32())}, rng.IntN(400))
	if st := attempt(ss, func() store.Status { return ss.Put(&k, store.Write{Value: value}, nil) }); st != store.OK {
		t.Errorf("%s: %v %v", name, st, ss.Err())
	}
	want[name] = value
}

// An heir goes on where the dead one stopped: what it writes is newer than all
// that it took, and its own heir finds that.
func TestLogsAreInheritedOverGenerations(t *testing.T) {
	rng := rand.New(rand.NewPCG(seedOf(t), 7))
	e := newEstate(t, rng, true)
	for range max(scale(12), 4) {
		e.live(rng.IntN(300))
		log := e.die()
		o, dev := e.heirOptions(store.Options{SegmentBytes: 4 << 10, Durability: store.EverySec})
		e.st, e.dev = open(t, o), dev
		im := importer(t, e.st, nil)
		importAll(t, im, log, 2, rng)
		finish(t, im)
		for i := range e.ss {
			e.ss[i] = session(t, e.st)
		}
		e.compare("the next generation", e.st, everywhere)
	}
}
