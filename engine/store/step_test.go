package store

import (
	"bytes"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// These tests put the background's steps and the sessions' in the one order
// that once went wrong.

// bench is a store with two sessions on two heads.
type bench struct {
	t   *testing.T
	o   Options
	dev *device.Memory
	st  *Store
	ss  [2]*Session
	now atomic.Int64 // Unix milliseconds
}

func newBench(t *testing.T, d Durability) *bench {
	t.Helper()
	b := &bench{t: t, dev: device.NewMemory()}
	b.now.Store(1000)
	b.o = Options{Durability: d, SegmentBytes: 64 << 10, Heads: 2, Device: b.dev, Now: b.now.Load}
	b.st = b.open(b.dev)
	for i := range b.ss {
		b.ss[i] = b.session()
	}
	for b.ss[0].head == b.ss[1].head { // The sweeper's session may come in between.
		b.ss[1].Close()
		b.ss[1] = b.session()
	}
	return b
}

func (b *bench) session() *Session {
	b.t.Helper()
	ss, err := b.st.NewSession()
	if err != nil {
		b.t.Fatal(err)
	}
	return ss
}

func (b *bench) open(dev *device.Memory) *Store {
	b.t.Helper()
	o := b.o
	o.Device = dev
	st, err := Open(o)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = st.Close() })
	return st
}

// put writes a value, and seals it if told to.
func (b *bench) put(n int, key, value string, seal bool) {
	b.t.Helper()
	ss := b.ss[n]
	ss.Begin()
	defer ss.End()
	k := ss.Key(0, []byte(key))
	if s := ss.Put(&k, Write{Value: []byte(value)}, nil); s != OK {
		b.t.Fatal(s, ss.Err())
	}
	if seal {
		ss.Seal()
	}
}

func (b *bench) delete(n int, key string) {
	b.t.Helper()
	ss := b.ss[n]
	ss.Begin()
	defer ss.End()
	k := ss.Key(0, []byte(key))
	if s := ss.Delete(&k, nil); s != OK {
		b.t.Fatal(s, ss.Err())
	}
	ss.Seal()
}

// retire closes the segment that a session appends to.
func (b *bench) retire(n int) *hlog.Segment {
	b.t.Helper()
	open := map[*hlog.Segment]bool{}
	for _, s := range b.st.log.Segments() {
		if !s.Closed() {
			open[s] = true
		}
	}
	b.ss[n].head.Rotate()
	for s := range open {
		if s.Closed() {
			return s
		}
	}
	b.t.Fatal("nothing was closed")
	return nil
}

// afterCrash reads a key from what a crash leaves.
func (b *bench) afterCrash(key string) string {
	b.t.Helper()
	return b.read(b.open(b.dev.Crash()), key)
}

func (b *bench) read(st *Store, key string) string {
	b.t.Helper()
	ss, err := st.NewSession()
	if err != nil {
		b.t.Fatal(err)
	}
	defer ss.Close()
	ss.Begin()
	defer ss.End()
	k := ss.Key(0, []byte(key))
	v, s := ss.Get(&k)
	if s == NotFound {
		return "(absent)"
	}
	if s != OK {
		b.t.Fatal(s, ss.Err())
	}
	return string(v.Value)
}

func TestARecordStaysUntilWhatReplacedItIsSealed(t *testing.T) {
	for _, d := range []Durability{EverySec, Always} {
		t.Run(d.String(), func(t *testing.T) {
			b := newBench(t, d)
			b.put(0, "key", "acknowledged", true)
			seg := b.retire(0)
			b.put(1, "key", "not yet sealed", false)
			if err := b.st.clean(seg); err != nil {
				t.Fatal(err)
			}
			if got := b.afterCrash("key"); got == "(absent)" {
				t.Fatal("the old value is gone, the new one never was")
			}
		})
	}
}

func TestTheSweeperRemovesWhatItLookedAt(t *testing.T) {
	for _, d := range []Durability{None, EverySec} {
		t.Run(d.String(), func(t *testing.T) {
			b := newBench(t, d)
			ss := b.ss[0]
			ss.Begin()
			k := ss.Key(0, []byte("key"))
			ss.Put(&k, Write{Value: []byte("brief"), ExpireAt: b.now.Load() + 1}, nil)
			ss.Seal()
			ss.End()
			b.now.Add(10)
			// The sweeper stands at the entry when somebody else writes it anew.
			ss.Begin()
			defer ss.End()
			b.st.ix.Step(0, 1<<20, func(pr *index.Probe) bool {
				other := b.ss[1]
				other.Begin()
				defer other.End()
				k := other.Key(0, []byte("key"))
				other.Put(&k, Write{Value: []byte("again"), ExpireAt: b.now.Load() + 1000}, nil)
				if ss.dropExpired(pr) {
					t.Error("the sweeper says that it dropped it")
				}
				return true
			})
			if got := b.read(b.st, "key"); got != "again" {
				t.Fatalf("key is %q", got)
			}
		})
	}
}

func TestTombstonesStayWhileAFileOfOldRecordsDoes(t *testing.T) {
	b := newBench(t, EverySec)
	b.put(0, "key", "deleted soon", true)
	old := b.retire(0)
	b.delete(0, "key")
	tombs := b.retire(0)
	for nth := range 50 {
		b.dev.Fail(device.OpRemove, nth+1, errors.New("the directory is read-only"))
	}
	if err := b.st.clean(old); err == nil {
		t.Fatal("nobody says that a segment could not be removed")
	}
	_ = b.st.clean(tombs)
	for _, s := range b.st.log.Segments() {
		if s.Closed() {
			_ = b.st.clean(s)
		}
	}
	if got := b.afterCrash("key"); got != "(absent)" {
		t.Fatalf("a deleted key came back: %q", got)
	}
}

func TestWhatWasForgottenDoesNotComeBackOlder(t *testing.T) {
	for _, d := range []Durability{Checkpoint, EverySec} {
		t.Run(d.String(), func(t *testing.T) {
			b := newBench(t, d)
			b.put(0, "other", "opens the first segment", true)
			b.put(1, "key", "old", true)
			b.put(0, "key", "new, in a segment with a lower id", true)
			seg := b.retire(0)
			b.st.freeze(seg)
			if err := b.st.forget(seg); err != nil {
				t.Fatal(err)
			}
			if got := b.read(b.st, "key"); got != "(absent)" {
				t.Fatalf("a forgotten key is %q", got)
			}
			if d == Checkpoint {
				if err := b.st.Checkpoint(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if got := b.afterCrash("key"); got != "(absent)" {
				t.Fatalf("a forgotten key came back as %q", got)
			}
		})
	}
}

func TestPiecesOfAValueThatIsBeingWrittenAreKept(t *testing.T) {
	b := newBench(t, EverySec)
	value := bytes.Repeat([]byte("0123456789abcdef"), 1000)
	ss := b.ss[0]
	ss.Begin()
	k := ss.Key(0, []byte("key"))
	// As Put does it: the pieces first. Then the cleaner comes.
	e := entry{value: value}
	if s := ss.writeChunks(&k, &e); s != OK {
		t.Fatal(s, ss.Err())
	}
	ss.End()
	seg := b.retire(0)
	if err := b.st.clean(seg); err != nil {
		t.Fatal(err)
	}
	ss.Begin()
	e.Type = 1 // A put.
	if s := ss.put(&k, &e, nil); s != OK {
		t.Fatal(s, ss.Err())
	}
	ss.chunking.Store(0)
	ss.Seal()
	ss.End()
	if got := b.read(b.st, "key"); got != string(value) {
		t.Fatalf("%d bytes are left of %d", len(got), len(value))
	}
	if got := b.afterCrash("key"); got != string(value) {
		t.Fatalf("%d bytes are left of %d after a crash", len(got), len(value))
	}
}

func TestPiecesThatBelongToNothingAreDroppedByRecovery(t *testing.T) {
	b := newBench(t, EverySec)
	for n := range 20 {
		b.put(0, "key", fmt.Sprintf("%030000d", n), true) // Each leaves its pieces behind.
	}
	st := b.open(b.dev.Crash())
	var live int64
	for _, s := range st.log.Segments() {
		live += st.log.Live(s)
	}
	if live > 60_000 {
		t.Fatalf("%d bytes are alive of one value of 30000", live)
	}
}

func TestAConditionalWriteWinsOverACopyOfTheSameVersion(t *testing.T) {
	b := newBench(t, EverySec)
	b.put(0, "key", "value", true)
	ss := b.ss[0]
	ss.Begin()
	k := ss.Key(0, []byte("key"))
	v, _ := ss.Get(&k)
	ss.End()
	if err := b.st.clean(b.retire(0)); err != nil { // It lies elsewhere now.
		t.Fatal(err)
	}
	ss.Begin()
	defer ss.End()
	if s := ss.Put(&k, Write{Value: []byte("next")}, &v); s != OK {
		t.Fatalf("the cleaner's copy counts as a change: %v", s)
	}
}

func TestATicketKnowsAllHeadsThatItLeansOn(t *testing.T) {
	dev := device.NewMemory()
	st, err := Open(Options{Durability: Always, SegmentBytes: 64 << 10, Heads: 8, Device: dev})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	var all []*Session
	for range 8 {
		ss, err := st.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		defer ss.Close()
		all = append(all, ss)
	}
	for n, ss := range all[1:] {
		ss.Begin()
		k := ss.Key(0, fmt.Appendf(nil, "key:%d", n))
		ss.Put(&k, Write{Value: []byte("unsynced")}, nil)
		ss.End()
	}
	ss := all[0]
	ss.Begin()
	for n := range all[1:] {
		k := ss.Key(0, fmt.Appendf(nil, "key:%d", n))
		if _, s := ss.Get(&k); s != OK {
			t.Fatal(s)
		}
	}
	ticket := ss.Seal()
	ss.End()
	if err := ss.WaitDurable(ticket); err != nil {
		t.Fatal(err)
	}
	for n, other := range all[1:] {
		if !st.log.Durable(other.head.Batch()) || other.head.Batch() == 0 {
			t.Errorf("head %d is not durable", n)
		}
	}
}

func TestAnAbsenceWaitsForItsTombstoneThoughAnotherDeletionFailed(t *testing.T) {
	b := newBench(t, Always)
	b.put(1, "neighbour", "on the other head", true)
	b.put(0, "key", "value", true)
	one, other := b.ss[0], b.ss[1]
	one.Begin()
	defer one.End()
	other.Begin()
	defer other.End()
	k := one.Key(0, []byte("key"))
	var pr index.Probe
	old, st := other.find(&k, &pr)
	if st != OK {
		t.Fatal(st)
	}
	ver := versionOf(old)
	if st := one.Delete(&k, nil); st != OK { // Both want to delete it; one is faster.
		t.Fatal(st, one.Err())
	}
	if st := other.remove(&k, &pr, old, ver); st != Conflict {
		t.Fatal(st, other.Err())
	}
	if _, st := other.Get(&k); st != NotFound {
		t.Fatal(st, other.Err())
	}
	told, gone := other.Seal(), one.Seal()
	if told.batch < gone.batch {
		t.Fatalf("that the key is absent waits for batch %d, its tombstone is in %d", told.batch, gone.batch)
	}
}

func TestWhoReadsAKeyTwiceInABatchDoesNotGoBackInTime(t *testing.T) {
	b := newBench(t, EverySec)
	b.put(0, "key", "old", true)
	ss := b.ss[0]
	ss.Begin()
	defer ss.End()
	k := ss.Key(0, []byte("key"))
	keys := []Key{k, k}
	var at [batchKeys]record.Address
	ss.approach(keys, &at)
	at[0] = 0 // Somebody had the bucket's lock at that moment.
	b.put(1, "key", "new", true)
	var views [2]View
	var st [2]Status
	ss.getAt(keys, &at, views[:], st[:])
	if st != [2]Status{OK, OK} || string(views[0].Value) != "new" {
		t.Fatal(st, string(views[0].Value))
	}
	if got := string(views[1].Value); got != "new" {
		t.Fatalf("first it was %q, then %q", views[0].Value, got)
	}
}
