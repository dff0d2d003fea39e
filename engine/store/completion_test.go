package store_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
)

// operation is one that the model has run.
type operation struct {
	id     store.OpID
	db     int
	key    string
	result []byte
	until  int64 // when it may be forgotten
}

// run runs it on a session, or gets its result.
func (o *operation) run(ss *store.Session, e store.Effect) (result []byte, again bool, st store.Status) {
	k := ss.Key(o.db, []byte(o.key))
	st = attempt(ss, func() (st store.Status) {
		var b []byte
		b, again, st = ss.Once(&k, o.id, func(*store.View, bool) store.Effect { return e })
		result = bytes.Clone(b)
		return st
	})
	return result, again, st
}

// keepFor is how long the model's stores keep results.
const keepFor = 100 * time.Millisecond

// once runs a new operation.
func (m *model) once() {
	db, key := m.draw()
	o := operation{id: store.OpID{Client: 7, Seq: uint64(len(m.ops))}, db: db, key: key, until: m.clock.Load() + keepFor.Milliseconds()}
	v := m.drawThing()
	w := v.write()
	effect := rapid.SampledFrom([]store.Effect{{Write: &w}, {Delete: true}, {}}).Draw(m.t, "effect")
	o.result = fmt.Appendf(nil, "result %d", len(m.ops))
	effect.Result = o.result
	m.each("once", func(s *subject, ss *store.Session, _ int) error {
		if effect.Write != nil || effect.Delete {
			delete(s.lost, fmt.Sprint(db, "/", key))
		}
		if got, again, st := o.run(ss, effect); st != store.OK || again || !bytes.Equal(got, o.result) {
			return fmt.Errorf("%v %q, again %v; %w", st, got, again, ss.Err())
		}
		return nil
	})
	switch {
	case effect.Write != nil:
		m.dbs[db][key] = v
	case effect.Delete:
		delete(m.dbs[db], key)
	}
	m.ops = append(m.ops, o)
}

// onceAgain tries an operation again: nothing changes.
func (m *model) onceAgain() {
	if len(m.ops) == 0 {
		return
	}
	o := m.ops[rapid.IntRange(0, len(m.ops)-1).Draw(m.t, "operation")]
	if o.until <= m.clock.Load() {
		return
	}
	m.each("once again", func(_ *subject, ss *store.Session, _ int) error {
		got, again, st := o.run(ss, store.Effect{Write: &store.Write{Value: []byte("run twice")}})
		if st != store.OK || !again || !bytes.Equal(got, o.result) {
			return fmt.Errorf("operation %d, on %s: %v %q, again %v, want %q", o.id.Seq, o.key, st, got, again, o.result)
		}
		return nil
	})
}

// add adds one to a counter by an operation, and answers with the sum.
func add(ss *store.Session, k *store.Key, id store.OpID) (sum uint64, again bool, st store.Status) {
	b, again, st := ss.Once(k, id, func(old *store.View, exists bool) store.Effect {
		n := uint64(1)
		if exists {
			n += binary.LittleEndian.Uint64(old.Value)
		}
		b := binary.LittleEndian.AppendUint64(nil, n)
		return store.Effect{Write: &store.Write{Value: b}, Result: b}
	})
	if st == store.OK {
		sum = binary.LittleEndian.Uint64(b)
	}
	return sum, again, st
}

func TestOfAttemptsThatRaceOneIsRun(t *testing.T) {
	forHammerConfigs(t, func(t *testing.T, st *store.Store) {
		stop := disturb(t, st)
		defer stop()
		ops := scale(4000)
		const sessions, counters = 4, 8
		var sums [sessions][]uint64
		crowd(t, st, sessions, func(ss *store.Session, n int) {
			for i := range ops {
				k := ss.Key(0, fmt.Appendf(nil, "counter %d", i%counters))
				var sum uint64
				if s := attempt(ss, func() (s store.Status) {
					sum, _, s = add(ss, &k, store.OpID{Client: 1, Seq: uint64(i)})
					return s
				}); s != store.OK {
					t.Error(s, ss.Err())
					return
				}
				sums[n] = append(sums[n], sum)
			}
		})
		seen := map[string]bool{}
		for i := range sums[0] {
			for n := range sums {
				if len(sums[n]) != len(sums[0]) || sums[n][i] != sums[0][i] {
					t.Fatalf("operation %d was answered differently", i)
				}
			}
			id := fmt.Sprint(i%counters, " ", sums[0][i])
			if seen[id] || sums[0][i] > uint64(ops/counters+1) {
				t.Fatalf("counter and sum %s: an operation was run twice", id)
			}
			seen[id] = true
		}
	})
}

// ledger is a few counters and the operations that were run on them.
type ledger struct {
	t   testing.TB
	ops []store.OpID
}

const ledgerCounters = 3

func ledgerKey(ss *store.Session, id store.OpID) store.Key {
	return ss.Key(0, fmt.Appendf(nil, "counter %d", id.Seq%ledgerCounters))
}

// verify checks on a store that survived something: each counter is as many as the
// operations on it that are recorded, and all that are acked are recorded.
func (l *ledger) verify(what string, st *store.Store, acked func(i int) bool) {
	l.t.Helper()
	ss, err := st.NewSession()
	if err != nil {
		l.t.Fatal(err)
	}
	defer ss.Close()
	var recorded [ledgerCounters]uint64
	for i, id := range l.ops {
		k := ledgerKey(ss, id)
		var sum uint64
		s := attempt(ss, func() store.Status {
			b, s := ss.Completed(k.Place, id)
			if s == store.OK {
				sum = binary.LittleEndian.Uint64(b)
			}
			return s
		})
		switch {
		case s == store.OK:
			recorded[id.Seq%ledgerCounters]++
			if sum > uint64(len(l.ops)) {
				l.t.Fatalf("%s: operation %d has the result %d", what, i, sum)
			}
		case s != store.NotFound || acked(i):
			l.t.Fatalf("%s: operation %d of %d, acknowledged %v: %v %v", what, i, len(l.ops), acked(i), s, ss.Err())
		}
	}
	for n, want := range recorded {
		var got uint64
		if b := readKey(l.t, ss, 0, fmt.Appendf(nil, "counter %d", n)); b != nil {
			got = binary.LittleEndian.Uint64(b)
		}
		if got != want {
			l.t.Fatalf("%s: counter %d is %d, and %d operations on it are recorded", what, n, got, want)
		}
	}
	sameResults(l.t, what, st, allPlaces)
}

func TestACrashKeepsAnEffectWithItsResultOrNone(t *testing.T) {
	t.Parallel()
	for name, o := range powerConfigs() {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seedOf(t), 5))
			dev := device.NewMemory()
			t.Cleanup(dev.Close)
			o.Device, o.Cluster = dev, true
			st := open(t, o)
			l := ledger{t: t}
			sessions := []*store.Session{session(t, st), session(t, st), session(t, st)}
			for n := range scale(60) {
				for range 1 + rng.IntN(20) {
					l.add(sessions[rng.IntN(len(sessions))], rng)
				}
				acked := 0
				if o.Durability == store.Always {
					for _, ss := range sessions {
						if err := ss.WaitDurable(ss.Seal()); err != nil {
							t.Fatal(err)
						}
					}
					acked = len(l.ops)
				}
				what, clone := fmt.Sprintf("loss of power %d", n), dev.PowerLoss(rng)
				if rng.IntN(2) == 0 {
					clone.Close()
					what, clone, acked = fmt.Sprintf("death %d", n), dev.Crash(), len(l.ops)
				}
				l.survive(what, clone, o, func(i int) bool { return i < acked }, rng)
			}
		})
	}
}

// add runs a new operation, or one of the last again, on a random session.
func (l *ledger) add(ss *store.Session, rng *rand.Rand) {
	l.t.Helper()
	id := store.OpID{Client: 3, Seq: uint64(len(l.ops))}
	fresh := len(l.ops) == 0 || rng.IntN(4) > 0
	if !fresh {
		id = l.ops[rng.IntN(len(l.ops))]
	}
	k := ledgerKey(ss, id)
	var again bool
	if s := attempt(ss, func() (s store.Status) {
		_, again, s = add(ss, &k, id)
		return s
	}); s != store.OK || again == fresh {
		l.t.Fatalf("%v %v, again %v", s, ss.Err(), again)
	}
	if fresh {
		l.ops = append(l.ops, id)
	}
}

// survive opens what a crash left, and lets an heir import it.
func (l *ledger) survive(what string, clone *device.Memory, o store.Options, acked func(int) bool, rng *rand.Rand) {
	l.t.Helper()
	defer clone.Close()
	o.Device = clone
	st, err := store.Open(o)
	if err != nil {
		l.t.Fatal(err)
	}
	l.verify(what, st, acked)
	if rng.IntN(2) == 0 {
		if err := st.Checkpoint(context.Background()); err != nil {
			l.t.Fatal(err)
		}
	}
	if err := st.CloseUnsaved(); err != nil {
		l.t.Fatal(err)
	}
	log := segmentsOf(l.t, clone)
	if st, err = store.Open(o); err != nil {
		l.t.Fatal(err)
	}
	l.verify(what+", opened again", st, acked)
	if err := st.Close(); err != nil {
		l.t.Fatal(err)
	}
	o.Device = device.NewMemory()
	defer o.Device.(*device.Memory).Close()
	if st, err = store.Open(o); err != nil {
		l.t.Fatal(err)
	}
	im := importer(l.t, st, nil)
	importAll(l.t, im, log, 2, rng)
	finish(l.t, im)
	l.verify(what+", imported", st, acked)
	if err := st.Close(); err != nil {
		l.t.Fatal(err)
	}
}

// resultConfigs are stores that must all keep results.
func resultConfigs() map[string]store.Options {
	const kib = 1 << 10
	return map[string]store.Options{
		"memory":         {SegmentBytes: 4 * kib},
		"checkpoint":     {SegmentBytes: 4 * kib, Durability: store.Checkpoint, MemoryBytes: 64 * kib},
		"everysec":       {SegmentBytes: 4 * kib, Durability: store.EverySec},
		"everysec/spill": {SegmentBytes: 4 * kib, Durability: store.EverySec, MemoryBytes: 64 * kib},
		"evict":          {SegmentBytes: 4 * kib, Durability: store.EverySec, MemoryBytes: 4<<20 + 256*kib, Policy: store.Evict}, // The index takes 4 MiB.
		"cluster":        {SegmentBytes: 4 * kib, Durability: store.EverySec, MemoryBytes: 64 * kib, Cluster: true},
	}
}

func forResults(t *testing.T, f func(*testing.T, store.Options, *atomic.Int64)) {
	for name, o := range resultConfigs() {
		t.Run(name, func(t *testing.T) {
			clock := new(atomic.Int64)
			clock.Store(1_000_000)
			o.Now, o.Heads = clock.Load, 2
			if o.Durability != store.None {
				dev := device.NewMemory()
				t.Cleanup(dev.Close)
				o.Device = dev
			}
			f(t, o, clock)
		})
	}
}

// runMany runs operations that write as many keys.
func runMany(t *testing.T, ss *store.Session, n int) {
	t.Helper()
	for i := range n {
		o := operation{id: store.OpID{Client: 1, Seq: uint64(i)}, key: fmt.Sprint("key:", i)}
		got, again, st := o.run(ss, store.Effect{Write: &store.Write{Value: []byte("v")}, Result: fmt.Append(nil, "first ", i)})
		if want := fmt.Sprint("first ", i); st != store.OK || again || string(got) != want {
			t.Fatalf("operation %d: %v %q, again %v; %v", i, st, got, again, ss.Err())
		}
	}
}

// retryMany tries them again.
func retryMany(t *testing.T, what string, ss *store.Session, n int) {
	t.Helper()
	for i := range n {
		o := operation{id: store.OpID{Client: 1, Seq: uint64(i)}, key: fmt.Sprint("key:", i)}
		got, again, st := o.run(ss, store.Effect{Write: &store.Write{Value: []byte("run twice")}})
		if want := fmt.Sprint("first ", i); st != store.OK || !again || string(got) != want {
			t.Fatalf("%s: operation %d: %v %q, again %v, want %q; %v", what, i, st, got, again, want, ss.Err())
		}
	}
}

func TestATruncationLeavesTheResultsOfOperations(t *testing.T) {
	forResults(t, func(t *testing.T, o store.Options, _ *atomic.Int64) {
		st := open(t, o)
		ss := session(t, st)
		const ops = 500
		runMany(t, ss, ops)
		for n := range 2000 { // Where there is a limit, results are cold by then.
			put(t, ss, 2, fmt.Sprint(n), strings.Repeat("x", 100), 0)
		}
		if o.Device != nil { // It closes all segments: they could be dropped as a whole.
			if err := st.Checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := st.TruncateAll(); err != nil {
			t.Fatal(err)
		}
		if !o.Cluster && o.Policy != store.Evict { // Else there are tombstones, or nothing of it was left.
			await.True(t, "what was truncated is gone", func() bool { return st.Metrics().LiveBytes < 100<<10 })
		}
		retryMany(t, "truncated", ss, ops)
		if seen := scanned(t, ss, 0); len(seen) != 0 {
			t.Fatalf("a truncated database has %d keys", len(seen))
		}
		if keys, _ := st.Count(0); keys != 0 {
			t.Fatalf("a truncated database counts %d keys", keys)
		}
		if m := st.Metrics(); m.Results != ops {
			t.Fatalf("%d results, want %d", m.Results, ops)
		}
	})
}

// fill overwrites a few keys of another database as many times.
func fill(t *testing.T, ss *store.Session, n int) {
	t.Helper()
	for i := range n {
		k := ss.Key(1, fmt.Append(nil, i%8))
		if st := attempt(ss, func() store.Status { return ss.Put(&k, store.Write{Value: make([]byte, 100)}, nil) }); st != store.OK {
			t.Fatal(st, ss.Err())
		}
	}
}

func TestResultsAreNoKeys(t *testing.T) {
	forResults(t, func(t *testing.T, o store.Options, _ *atomic.Int64) {
		st := open(t, o)
		ss := session(t, st)
		for i := range 200 { // Of operations without effect only the result is there.
			o := operation{id: store.OpID{Client: 1, Seq: uint64(i)}, key: fmt.Sprint("key:", i)}
			if _, _, st := o.run(ss, store.Effect{Delete: true, Result: []byte("no")}); st != store.OK {
				t.Fatal(st, ss.Err())
			}
		}
		if seen := scanned(t, ss, 0); len(seen) != 0 {
			t.Fatalf("a scan shows %d keys", len(seen))
		}
		if keys, expires := st.Count(0); keys != 0 || expires != 0 {
			t.Fatalf("%d keys are counted, %d that expire", keys, expires)
		}
		if st := attempt(ss, func() store.Status { _, st := ss.RandomKey(0, nil); return st }); st != store.NotFound {
			t.Fatalf("a random key: %v", st)
		}
		put(t, ss, 0, "the only one", "v", 0)
		for range 20 {
			var key []byte
			attempt(ss, func() (st store.Status) { key, st = ss.RandomKey(0, nil); return st })
			if string(key) != "the only one" {
				t.Fatalf("a random key is %q", key)
			}
		}
	})
}

func TestResultsGoByTime(t *testing.T) {
	forResults(t, func(t *testing.T, o store.Options, clock *atomic.Int64) {
		o.KeepResults = time.Second
		st, err := store.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		ss := session(t, st)
		const ops = 300
		runMany(t, ss, ops)
		clock.Add(999)
		retryMany(t, "in time", ss, ops)
		if o.Device != nil { // They go after a restart, too.
			ss.Close()
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
			if st, err = store.Open(o); err != nil {
				t.Fatal(err)
			}
			ss = session(t, st)
			retryMany(t, "opened again", ss, ops)
		}
		defer st.Close()
		clock.Add(2)
		late := operation{id: store.OpID{Client: 1}, key: "key:0"}
		if _, again, s := late.run(ss, store.Effect{Result: []byte("anew")}); again || s != store.OK {
			t.Fatalf("an attempt after its time: %v, again %v", s, again)
		}
		clock.Add(2000)
		if o.MemoryBytes > 0 {
			fill(t, ss, 2000) // Cold ones go when their segment is looked at.
		}
		await.True(t, "all results are gone", func() bool { return st.Metrics().Results == 0 })
	})
}

// Results cannot be forgotten before their time, and are written again when the rest of their segment is. That makes no room.
func TestACacheThatIsFullOfResultsRefusesWritesUntilTheirTimeIsOver(t *testing.T) {
	dev := device.NewMemory()
	t.Cleanup(dev.Close)
	clock := new(atomic.Int64)
	clock.Store(1_000_000)
	st := open(t, store.Options{
		Device: dev, SegmentBytes: 4 << 10, Durability: store.EverySec, MemoryBytes: 64 << 10, Policy: store.Evict,
		Heads: 2, Now: clock.Load, KeepResults: time.Second,
	})
	ss := session(t, st)
	run := func(i int) store.Status {
		o := operation{id: store.OpID{Client: 1, Seq: uint64(i)}, key: fmt.Sprint("key:", i)}
		_, _, s := o.run(ss, store.Effect{Write: &store.Write{Value: []byte("v")}, Result: make([]byte, 100)})
		return s
	}
	n := 0
	for n < 10_000 && run(n) == store.OK {
		n++
	}
	if n == 10_000 || !errors.Is(ss.Err(), store.ErrMemoryFull) {
		t.Fatalf("after %d operations: %v", n, ss.Err())
	}
	clock.Add(2000)
	await.True(t, "there is room again", func() bool { return run(n) == store.OK })
}

func TestAForgottenOperationIsRunAgain(t *testing.T) {
	forResults(t, func(t *testing.T, o store.Options, _ *atomic.Int64) {
		st := open(t, o)
		ss := session(t, st)
		const ops = 100
		runMany(t, ss, ops)
		for i := range ops {
			k := ss.Key(0, fmt.Append(nil, "key:", i))
			id := store.OpID{Client: 1, Seq: uint64(i)}
			if s := attempt(ss, func() store.Status { return ss.Forget(k.Place, id) }); s != store.OK {
				t.Fatal(s, ss.Err())
			}
			if s := attempt(ss, func() store.Status { return ss.Forget(k.Place, id) }); s != store.NotFound {
				t.Fatal(s, ss.Err())
			}
		}
		if m := st.Metrics(); m.Results != 0 || m.Keys != ops {
			t.Fatalf("%d results and %d keys are left", m.Results, m.Keys)
		}
		runMany(t, ss, ops)
	})
}

func TestAStampIsTheVersionThatWasWritten(t *testing.T) {
	forResults(t, func(t *testing.T, o store.Options, _ *atomic.Int64) {
		ss := session(t, open(t, o))
		put(t, ss, 0, "deleted", "v", 0)
		k := ss.Key(0, []byte("deleted"))
		attempt(ss, func() store.Status { return ss.Delete(&k, nil) }) // Versions do not begin at 1.
		for i := range 5 {
			op := operation{id: store.OpID{Client: 1, Seq: uint64(i)}, key: "deleted"}
			b, _, st := op.run(ss, store.Effect{Write: &store.Write{Value: []byte("v")}, Result: []byte("x"), Stamp: true})
			if st != store.OK || len(b) != 9 || b[0] != 'x' {
				t.Fatalf("%v %q", st, b)
			}
			attempt(ss, func() store.Status {
				v, st := ss.Get(&k)
				if got := binary.LittleEndian.Uint64(b[1:]); v.Version != got {
					t.Fatalf("stamp %d, version %d", got, v.Version)
				}
				return st
			})
		}
		op := operation{id: store.OpID{Client: 2}, key: "absent"}
		if b, _, _ := op.run(ss, store.Effect{Delete: true, Stamp: true}); !bytes.Equal(b, make([]byte, 8)) {
			t.Fatalf("the stamp of nothing is %v", b)
		}
	})
}

func TestATransactionOfSeveralKeysIsRunOnce(t *testing.T) {
	forResults(t, func(t *testing.T, o store.Options, _ *atomic.Int64) {
		ss := session(t, open(t, o))
		multi := func(value string) (result string) {
			s := attempt(ss, func() store.Status {
				a, b := ss.Key(0, []byte("{x}a")), ss.Key(0, []byte("{x}b"))
				op := ss.OpKey(a.Place, store.OpID{Client: 9, Seq: 1})
				if s := ss.Lock([]store.Key{a, b, op}); s != store.OK {
					return s
				}
				if v, s := ss.Get(&op); s == store.OK {
					result = string(v.Value)
					ss.Abort()
					return store.OK
				}
				ss.Put(&a, store.Write{Value: []byte(value)}, nil)
				ss.Put(&b, store.Write{Value: bytes.Repeat([]byte(value), 100)}, nil)
				result = "wrote " + value
				if s := ss.Complete(&op, []byte(result)); s != store.OK {
					t.Fatal(s, ss.Err())
				}
				return ss.Commit()
			})
			if s != store.OK {
				t.Fatal(s, ss.Err())
			}
			return result
		}
		if first, second := multi("first"), multi("second"); first != "wrote first" || second != first {
			t.Fatalf("%q, then %q", first, second)
		}
		if got := readKey(t, ss, 0, []byte("{x}b")); !bytes.Equal(got, bytes.Repeat([]byte("first"), 100)) {
			t.Fatalf("the second attempt wrote %q", brief(got))
		}
	})
}

func TestWhatAnOperationMayNotDo(t *testing.T) {
	ss := session(t, open(t, store.Options{}))
	ss.Begin()
	defer ss.End()
	k := ss.Key(0, []byte("k"))
	effect := store.Effect{Write: &store.Write{Value: []byte("v")}, Result: make([]byte, store.MaxResultBytes+1)}
	if _, _, st := ss.Once(&k, store.OpID{}, func(*store.View, bool) store.Effect { return effect }); st != store.TooLarge {
		t.Fatalf("a result that is too large: %v", st)
	}
	if _, st := ss.Get(&k); st != store.NotFound {
		t.Fatalf("an operation that was refused had an effect: %v", st)
	}
	if st := ss.Lock([]store.Key{k}); st != store.OK {
		t.Fatal(st)
	}
	if _, _, st := ss.Once(&k, store.OpID{}, func(*store.View, bool) store.Effect { return store.Effect{} }); st != store.Failed {
		t.Fatalf("an operation inside a transaction: %v", st)
	}
	if st := ss.Complete(&k, nil); st != store.Failed {
		t.Fatalf("a key that is no operation was completed: %v", st)
	}
	ss.Abort()
}

// Who asks whether an operation was run learns that only with what it did.
func TestAnAnswerFromAnEarlierAttemptWaitsForItsBatch(t *testing.T) {
	dev := device.NewMemory()
	t.Cleanup(dev.Close)
	o := store.Options{Device: dev, Durability: store.EverySec, Heads: 2}
	st := open(t, o)
	first, second := session(t, st), session(t, st)
	k := first.Key(0, []byte("k"))
	first.Begin()
	if _, _, s := add(first, &k, store.OpID{Client: 1}); s != store.OK {
		t.Fatal(s)
	}
	second.Begin()
	if _, again, s := add(second, &k, store.OpID{Client: 1}); s != store.OK || !again {
		t.Fatal(s, again)
	}
	second.Seal() // It answers; the first has sealed nothing yet.
	clone := dev.Crash()
	t.Cleanup(clone.Close)
	o.Device = clone
	after := session(t, open(t, o))
	if got := readKey(t, after, 0, []byte("k")); len(got) != 8 || got[0] != 1 {
		t.Fatalf("%v is left of what was answered", got)
	}
	second.End()
	first.Seal()
	first.End()
}

func TestEveryEntryOfALogHasItsPlace(t *testing.T) {
	rng := rand.New(rand.NewPCG(seedOf(t), 7))
	e := newEstate(t, rng, true)
	e.live(200)
	runMany(t, e.ss[0], 20)
	kinds := map[record.Type]int{}
	for _, s := range e.die() {
		for _, p := range record.Entries(s) {
			place, ok := store.PlaceOfEntry(p)
			switch p.Type() {
			case record.TypePut, record.TypeTombstone, record.TypeCompletion:
				kinds[p.Type()]++
				if !ok {
					t.Fatalf("a %v has no place", p.Type())
				}
				if p.Table() < estateDBs && place != record.PlaceOf(p.Table(), p.Key()) {
					t.Fatalf("%s is not where its key is", p.Key())
				}
			default:
				if ok {
					t.Fatalf("a %v has a place", p.Type())
				}
			}
		}
	}
	if len(kinds) != 3 {
		t.Fatalf("the log has %v", kinds)
	}
}

// BenchmarkOnce compares a write that is run once with one that is not.
func BenchmarkOnce(b *testing.B) {
	for _, once := range []bool{false, true} {
		b.Run(map[bool]string{false: "put", true: "once"}[once], func(b *testing.B) {
			ss, ks := loaded(b, store.Options{Dir: b.TempDir(), Durability: store.EverySec})
			w := store.Write{Value: make([]byte, 100)}
			effect := store.Effect{Write: &w, Result: make([]byte, 8)}
			n := uint64(0)
			for b.Loop() {
				if n%64 == 0 {
					ss.Begin()
				}
				k := ks.random()
				st := store.OK
				if once {
					_, _, st = ss.Once(&k, store.OpID{Client: 1, Seq: n}, func(*store.View, bool) store.Effect { return effect })
				} else {
					st = ss.Put(&k, w, nil)
				}
				if st != store.OK {
					b.Fatal(st, ss.Err())
				}
				if n%64 == 63 {
					ss.Seal()
					ss.End()
				}
				n++
			}
			if n%64 != 0 {
				ss.End()
			}
		})
	}
}

// A value may be larger than the memory that its store may have.
func TestAnOperationMayWriteALargeValue(t *testing.T) {
	t.Parallel()
	forResults(t, func(t *testing.T, o store.Options, _ *atomic.Int64) {
		if o.Policy == store.Evict {
			t.Skip("what does not fit is forgotten")
		}
		st := open(t, o)
		ss := session(t, st)
		for i := range 3 {
			value := bytes.Repeat([]byte{byte('a' + i)}, 150_000)
			op := operation{id: store.OpID{Client: 1, Seq: uint64(i)}, key: "large"}
			for attempt := range 2 {
				got, again, s := op.run(ss, store.Effect{Write: &store.Write{Value: value}, Result: []byte("written"), Stamp: true})
				if s != store.OK || again != (attempt > 0) || !bytes.HasPrefix(got, []byte("written")) {
					t.Fatalf("attempt %d: %v %q, again %v; %v", attempt, s, got, again, ss.Err())
				}
				value[0] = 'x' // That of the second attempt is not to be seen.
			}
			value[0] = value[1]
			if got := readKey(t, ss, 0, []byte("large")); !bytes.Equal(got, value) {
				t.Fatalf("%s, want %s", brief(got), brief(value))
			}
		}
		if keys, _ := st.Count(0); keys != 1 {
			t.Fatalf("%d keys", keys)
		}
	})
}

func TestOfLargeWritesThatRaceEachBuildsOnTheLast(t *testing.T) {
	t.Parallel()
	forHammerConfigs(t, func(t *testing.T, st *store.Store) {
		const sessions = 3
		ops := max(scale(40), 10)
		crowd(t, st, sessions, func(ss *store.Session, n int) {
			for i := range ops {
				k := ss.Key(0, []byte("list"))
				id := store.OpID{Client: uint64(n % 2), Seq: uint64(i)} // Two sessions try the same ones.
				s := attempt(ss, func() store.Status {
					_, _, s := ss.Once(&k, id, func(old *store.View, _ bool) store.Effect {
						return store.Effect{Write: &store.Write{Value: append(bytes.Clone(old.Value), make([]byte, 1000)...)}}
					})
					return s
				})
				if s != store.OK {
					t.Error(s, ss.Err())
					return
				}
			}
		})
		ss := session(t, st)
		if got := readKey(t, ss, 0, []byte("list")); len(got) != 2*ops*1000 {
			t.Fatalf("%d operations appended %d bytes", 2*ops, len(got))
		}
	})
}
