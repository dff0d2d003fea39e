package store_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
)

// notes collects what a store logs.
type notes struct {
	mu    sync.Mutex
	lines []string
}

func (n *notes) Write(b []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, string(b))
	return len(b), nil
}

func (n *notes) mention(s string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.lines {
		if strings.Contains(l, s) {
			return true
		}
	}
	return false
}

func (n *notes) logger() *slog.Logger { return slog.New(slog.NewTextHandler(n, nil)) }

// tryPut writes once, and fetches if it has to.
func tryPut(ss *store.Session, key, value string) store.Status {
	return attempt(ss, func() store.Status {
		k := ss.Key(0, []byte(key))
		return ss.Put(&k, store.Write{Value: []byte(value)}, nil)
	})
}

// faultConfigs are logged stores and one that spills and checkpoints.
func faultConfigs() map[string]store.Options {
	return map[string]store.Options{
		"everysec":   {Durability: store.EverySec, SegmentBytes: 16 << 10, Heads: 2},
		"always":     {Durability: store.Always, SegmentBytes: 16 << 10, Heads: 2},
		"checkpoint": {Durability: store.Checkpoint, SegmentBytes: 16 << 10, Heads: 2, MemoryBytes: 400 << 10},
	}
}

func TestAFullDiskRefusesWritesAndLosesNothing(t *testing.T) {
	for name, o := range faultConfigs() {
		t.Run(name, func(t *testing.T) {
			dev := device.NewMemory()
			dev.SetCapacity(800 << 10)
			o.Device = dev
			st := open(t, o)
			ss := session(t, st)
			value := strings.Repeat("x", 300)
			there := 0
			s := store.OK
			for ; s == store.OK; there++ {
				if there > 20000 {
					t.Fatal("the disk is never full")
				}
				s = tryPut(ss, fmt.Sprintf("full:%d", there), value)
			}
			there--
			if s != store.Refused || !errors.Is(ss.Err(), device.ErrFull) && !store.OutOfMemory(ss.Err()) {
				t.Fatalf("on a full disk: %v, %v", s, ss.Err())
			}
			if got := get(t, ss, 0, fmt.Sprintf("full:%d", there)); got != "(absent)" {
				t.Fatalf("what was refused is there: %.20q", got)
			}
			for n := range there {
				if got := get(t, ss, 0, fmt.Sprintf("full:%d", n)); got != value {
					t.Fatalf("on a full disk key %d is %.20q", n, got)
				}
			}
			dev.SetCapacity(0)
			await.True(t, "writing works again", func() bool { return tryPut(ss, "again", "yes") == store.OK })
			for n := range there {
				if got := get(t, ss, 0, fmt.Sprintf("full:%d", n)); got != value {
					t.Fatalf("afterwards key %d is %.20q", n, got)
				}
			}
			reopened(t, st, o, func(ss *store.Session) {
				for n := range there {
					if got := get(t, ss, 0, fmt.Sprintf("full:%d", n)); got != value {
						t.Fatalf("after a restart key %d is %.20q", n, got)
					}
				}
			})
		})
	}
}

// reopened closes a store and opens it again.
func reopened(t *testing.T, st *store.Store, o store.Options, f func(*store.Session)) {
	t.Helper()
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	f(session(t, open(t, o)))
}

func TestAFullDiskLetsDeletionsMakeRoom(t *testing.T) {
	dev := device.NewMemory()
	dev.SetCapacity(800 << 10)
	o := store.Options{Durability: store.EverySec, SegmentBytes: 16 << 10, Heads: 1, Device: dev}
	st := open(t, o)
	ss := session(t, st)
	value := strings.Repeat("x", 300)
	keys := 0
	for tryPut(ss, fmt.Sprint(keys), value) == store.OK {
		keys++
	}
	// Truncation needs no room in the log, only a little beside it, and leaves
	// nothing but garbage.
	dev.SetCapacity(808 << 10)
	if err := st.Truncate(0); err != nil {
		t.Fatal(err)
	}
	await.True(t, "the cleaner makes room", func() bool { return tryPut(ss, "again", "yes") == store.OK })
	dev.SetCapacity(0)
}

func TestAFailedSyncEndsAllWrites(t *testing.T) {
	for _, d := range []store.Durability{store.EverySec, store.Always} {
		t.Run(d.String(), func(t *testing.T) {
			dev := device.NewMemory()
			var log notes
			st, err := store.Open(store.Options{Device: dev, Durability: d, SegmentBytes: 16 << 10, Heads: 1, Logger: log.logger()})
			if err != nil {
				t.Fatal(err)
			}
			ss := session(t, st)
			put(t, ss, 0, "before", "safe", 0)
			if err := st.Checkpoint(context.Background()); err != nil {
				t.Fatal(err)
			}
			broken := errors.New("the disk is broken")
			put(t, ss, 0, "after", "who knows", 0)
			for nth := range 100 { // The next one may be that of a segment which nobody uses yet.
				dev.Fail(device.OpSync, 1+nth, broken)
			}
			if err := st.Checkpoint(context.Background()); !errors.Is(err, broken) {
				t.Fatalf("a checkpoint on a broken disk: %v", err)
			}
			await.True(t, "writes fail", func() bool { return tryPut(ss, "more", "lost") == store.Failed })
			if !errors.Is(ss.Err(), broken) || !log.mention("sync failed") {
				t.Fatalf("the cause is not told: %v", ss.Err())
			}
			ss.Begin()
			k := ss.Key(0, []byte("after"))
			v, s := ss.Get(&k)
			if s != store.OK || string(v.Value) != "who knows" {
				t.Fatalf("reads do not live on: %v %q", s, v.Value)
			}
			ticket := ss.Seal()
			ss.End()
			if err := ss.WaitDurable(ticket); d == store.Always && !errors.Is(err, broken) {
				t.Fatalf("a ticket that never comes: %v", err)
			}
			if err := st.Close(); !errors.Is(err, broken) {
				t.Fatalf("close hides the failure: %v", err)
			}
			again := open(t, store.Options{Device: dev.Crash(), Durability: d, SegmentBytes: 16 << 10})
			if got := get(t, session(t, again), 0, "before"); got != "safe" {
				t.Fatalf("what was safe is %q", got)
			}
		})
	}
}

func TestEachFailingCallOfTheDeviceIsSurvived(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk has a moment")
	for name, o := range faultConfigs() {
		for _, op := range []device.Op{device.OpCreate, device.OpMap, device.OpWrite, device.OpRead, device.OpRemove, device.OpOpen} {
			t.Run(fmt.Sprintf("%s/%v", name, op), func(t *testing.T) {
				for nth := 1; nth < 40; nth += 1 + nth/3 {
					surviveFault(t, o, op, nth, broken)
				}
			})
		}
	}
}

// surviveFault runs a small life in which one call of the device fails, and
// compares what is there to what was acknowledged.
func surviveFault(t *testing.T, o store.Options, op device.Op, nth int, fault error) {
	t.Helper()
	dev := device.NewMemory()
	defer dev.Close()
	o.Device = dev
	st, err := store.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	ss, err := st.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	dev.Fail(op, nth, fault)
	want := map[string]string{}
	for n := range 300 {
		key, value := fmt.Sprint(n%80), strings.Repeat(fmt.Sprint(n), 1+n%100)
		if s := tryPut(ss, key, value); s == store.OK {
			want[key] = value
		} else if ss.Err() == nil && s != store.Failed {
			t.Fatalf("%v call %d: %v without a cause", op, nth, s)
		}
		if n%100 == 99 {
			_ = st.Checkpoint(context.Background())
		}
	}
	ss.Close()
	_ = st.Close() // It may tell of the fault.
	clone := dev.Crash()
	defer clone.Close()
	st, err = store.Open(store.Options{Device: clone, Durability: o.Durability, SegmentBytes: o.SegmentBytes, Heads: o.Heads})
	if err != nil {
		t.Fatalf("%v call %d: open again: %v", op, nth, err)
	}
	defer st.Close()
	if o.Durability == store.Checkpoint {
		return // Its last checkpoint may be what failed.
	}
	ss, err = st.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer ss.Close()
	for key, value := range want {
		if got := get(t, ss, 0, key); got != value {
			t.Fatalf("%v call %d: key %s is %.30q, want %.30q", op, nth, key, got, value)
		}
	}
}

// damage flips a byte in the middle of a segment's used part.
func damage(t *testing.T, dev *device.Memory, id record.SegmentID, at int64) {
	t.Helper()
	f, err := dev.Open(id)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0x40
	if _, err := f.WriteAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
}

// filled gives a device with several closed segments, as a crash leaves it. The
// store that wrote them is gone.
func filled(t *testing.T, o store.Options) *device.Memory {
	t.Helper()
	dev := device.NewMemory()
	defer dev.Close()
	o.Device = dev
	st, err := store.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	ss, err := st.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer ss.Close()
	for n := range 400 {
		put(t, ss, 0, fmt.Sprint(n), strings.Repeat("v", 100), 0)
	}
	if err := st.Checkpoint(context.Background()); err != nil {
		t.Fatal(err)
	}
	for n := range 10 {
		put(t, ss, 0, fmt.Sprint(n), "the tail", 0)
	}
	left := dev.Crash()
	t.Cleanup(left.Close)
	return left
}

func TestAFullDiskKeepsNoLoggedStoreFromClosing(t *testing.T) {
	for _, d := range []store.Durability{store.EverySec, store.Always} {
		t.Run(d.String(), func(t *testing.T) {
			dev := device.NewMemory()
			defer dev.Close()
			var log notes
			o := store.Options{Durability: d, SegmentBytes: 16 << 10, Heads: 1, Device: dev, Logger: log.logger()}
			liveShortly(t, o, 1000)
			st, err := store.Open(o)
			if err != nil {
				t.Fatal(err)
			}
			ss := session(t, st)
			put(t, ss, 0, "the last", "of all", 0)
			if err := ss.WaitDurable(ss.Seal()); err != nil {
				t.Fatal(err)
			}
			ss.Close()
			dev.SetCapacity(1)
			if err := st.Close(); err != nil {
				t.Fatalf("all is safe, but closing fails: %v", err)
			}
			if !log.mention("the index was not saved") {
				t.Errorf("nobody was told that the next start takes longer: %q", log.lines)
			}
			dev.SetCapacity(0)
			again := session(t, open(t, o))
			if got := get(t, again, 0, "the last"); got != "of all" {
				t.Errorf("the last write reads %q", got)
			}
			if got := len(scanned(t, again, 0)); got != 201 {
				t.Errorf("%d keys are left of 201", got)
			}
		})
	}
}

func TestAFullDiskDoesKeepACheckpointedStoreFromClosing(t *testing.T) {
	dev := device.NewMemory()
	defer dev.Close()
	st, err := store.Open(store.Options{Durability: store.Checkpoint, SegmentBytes: 16 << 10, Heads: 1, Device: dev})
	if err != nil {
		t.Fatal(err)
	}
	ss := session(t, st)
	put(t, ss, 0, "key", "value", 0)
	ss.Close()
	dev.SetCapacity(1)
	if st.Close() == nil {
		t.Fatal("nothing was saved, and nobody is told")
	}
}

// damageValue flips a bit of a value, wherever it lies on the device.
func damageValue(t *testing.T, dev *device.Memory, value string) {
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
		defer f.Close()
		b := make([]byte, f.Size())
		if n, _ := f.ReadAt(b, 0); n < len(b) {
			t.Fatalf("%d bytes of segment %d can be read", n, id)
		}
		if at := strings.Index(string(b), value); at >= 0 {
			damage(t, dev, id, int64(at))
			return
		}
	}
	t.Fatalf("%q is nowhere", value)
}

func TestARecordThatCannotBeReadMakesWayForItsSuccessor(t *testing.T) {
	dev := device.NewMemory()
	defer dev.Close()
	o := store.Options{Durability: store.EverySec, SegmentBytes: 4 << 10, Heads: 1, MemoryBytes: 64 << 10, Device: dev, CheckpointEvery: -1}
	st, err := store.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	ss := session(t, st)
	put(t, ss, 0, "changed", "the first value of changed", 0)
	put(t, ss, 0, "deleted", "the first value of deleted", 0)
	put(t, ss, 0, "neither", "the first value of neither", 0)
	for n := range 2000 {
		put(t, ss, 0, fmt.Sprint(n), strings.Repeat("v", 100), 0)
	}
	if err := st.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	put(t, ss, 0, "changed", "the second value", 0)
	if s := remove(t, ss, 0, "deleted"); s != store.OK {
		t.Fatal(s)
	}
	ss.Seal()
	left := dev.Crash()
	t.Cleanup(left.Close)
	o.Device = left
	ss.Close()
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"changed", "deleted", "neither"} {
		damageValue(t, left, "the first value of "+key)
	}
	again := open(t, o)
	ss = session(t, again)
	if got := get(t, ss, 0, "changed"); got != "the second value" {
		t.Errorf("what was written after the damaged record reads %q", got)
	}
	if got := get(t, ss, 0, "deleted"); got != "(absent)" {
		t.Errorf("what was deleted after the damaged record reads %q", got)
	}
	if n, _ := again.Count(0); n != 2002 {
		t.Errorf("%d keys are counted of 2002", n)
	}
	if s := remove(t, ss, 0, "changed"); s != store.OK {
		t.Error(s)
	}
	if got := get(t, ss, 0, "changed"); got != "(absent)" {
		t.Errorf("deleted at last, it reads %q", got)
	}
}

// damageAt is where closedSegment has a byte to damage.
const damageAt = 2000

// closedSegment gives one of those in the middle that were closed and synced,
// and hence cut, and have something in them: the cleaner's may be short.
func closedSegment(t *testing.T, dev *device.Memory, segmentBytes int) record.SegmentID {
	t.Helper()
	ids, err := dev.List()
	if err != nil {
		t.Fatal(err)
	}
	closed := slices.DeleteFunc(ids, func(id record.SegmentID) bool {
		f, err := dev.Open(id)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		return f.Size() <= damageAt || f.Size() == int64(segmentBytes)
	})
	if len(closed) == 0 {
		t.Fatal("no segment is closed")
	}
	return closed[len(closed)/2]
}

func TestADamagedClosedSegmentKeepsTheStoreShut(t *testing.T) {
	for _, d := range []store.Durability{store.Checkpoint, store.EverySec, store.Always} {
		t.Run(d.String(), func(t *testing.T) {
			o := store.Options{Durability: d, SegmentBytes: 8 << 10, Heads: 1}
			dev := filled(t, o)
			_ = dev.RemoveMeta("index.snapshot") // With it only the tail is looked at.
			victim := closedSegment(t, dev, o.SegmentBytes)
			damage(t, dev, victim, damageAt)
			o.Device = dev
			_, err := store.Open(o)
			var r *store.RecoveryError
			if !errors.As(err, &r) || r.Segment != victim {
				t.Fatalf("open: %v, want a RecoveryError of segment %d", err, victim)
			}
			if !errors.Is(err, record.ErrCorrupt) {
				t.Fatalf("open: %v is no corruption", err)
			}
			damage(t, dev, victim, damageAt) // And back again.
			ss := session(t, open(t, o))
			if got := len(scanned(t, ss, 0)); got != 400 {
				t.Fatalf("%d keys, want 400", got)
			}
		})
	}
}

func TestATornTailIsDroppedWithAWarning(t *testing.T) {
	for _, d := range []store.Durability{store.EverySec, store.Always} {
		t.Run(d.String(), func(t *testing.T) {
			o := store.Options{Durability: d, SegmentBytes: 8 << 10, Heads: 1}
			dev := filled(t, o)
			tail := lastUsed(t, dev)
			f, err := dev.Open(tail)
			if err != nil {
				t.Fatal(err)
			}
			b := make([]byte, f.Size())
			f.ReadAt(b, 0)
			ext, err := record.Scan(b, tail)
			if err != nil || ext.Closed || ext.End == 0 {
				t.Fatalf("segment %d is not an open one: %+v %v", tail, ext, err)
			}
			// Half of a batch: an entry whose seal did not arrive.
			n := record.Encode(b[ext.End:], &record.Header{Type: record.TypePut, Version: 1 << 40}, []byte("5"), []byte("torn"), true)
			if _, err := f.WriteAt(b[ext.End:ext.End+n], int64(ext.End)); err != nil {
				t.Fatal(err)
			}
			f.Close()
			var log notes
			o.Device, o.Logger = dev, log.logger()
			ss := session(t, open(t, o))
			if got := get(t, ss, 0, "5"); got != "the tail" {
				t.Fatalf("key 5 is %q", got)
			}
			if !log.mention("unfinished batch") {
				t.Fatalf("nobody was warned: %q", log.lines)
			}
		})
	}
}

// lastUsed finds the open segment with the newest entries.
func lastUsed(t *testing.T, dev *device.Memory) record.SegmentID {
	t.Helper()
	ids, err := dev.List()
	if err != nil {
		t.Fatal(err)
	}
	for i := len(ids) - 1; i >= 0; i-- {
		f, err := dev.Open(ids[i])
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, f.Size())
		f.ReadAt(b, 0)
		f.Close()
		if ext, _ := record.Scan(b, ids[i]); ext.End > 0 && !ext.Closed {
			return ids[i]
		}
	}
	t.Fatal("no segment is open")
	return 0
}

func TestASegmentThatCannotBeRemovedBringsNothingBack(t *testing.T) {
	dev := device.NewMemory()
	o := store.Options{Durability: store.EverySec, SegmentBytes: 4 << 10, Heads: 1, Device: dev}
	st, err := store.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close() // With an error: spares cannot be removed either.
	ss := session(t, st)
	for nth := range 200 { // Every removal fails for a while.
		dev.Fail(device.OpRemove, nth+1, errors.New("the directory is read-only"))
	}
	for n := range 500 {
		put(t, ss, 0, fmt.Sprint(n), "deleted soon", 0)
	}
	for n := range 500 {
		if s := remove(t, ss, 0, fmt.Sprint(n)); s != store.OK {
			t.Fatal(s, ss.Err())
		}
	}
	for n := 0; n < 3000 && st.Metrics().CleanedSegments < 40; n++ {
		put(t, ss, 0, "other", strings.Repeat("x", 100), 0)
	}
	clone := dev.Crash()
	o.Device = clone
	again := session(t, open(t, o))
	if seen := scanned(t, again, 0); len(seen) > 1 {
		t.Fatalf("%d deleted keys came back", len(seen)-1)
	}
}

func TestAnOperationThatAFullDiskRefusedIsRunOnceWhenItIsSentAgain(t *testing.T) {
	dev := device.NewMemory()
	dev.SetCapacity(800 << 10)
	st := open(t, store.Options{Durability: store.EverySec, SegmentBytes: 16 << 10, Heads: 1, Device: dev, Cluster: true})
	ss := session(t, st)
	counter, seq := "", uint64(0)
	add := func() (result string, again bool, s store.Status) {
		s = attempt(ss, func() store.Status {
			k := ss.Key(0, []byte(counter))
			b, repeated, s := ss.Once(&k, store.OpID{Client: 7, Seq: seq}, func(old *store.View, _ bool) store.Effect {
				return store.Effect{Write: &store.Write{Value: append([]byte("x"), old.Value...)}, Result: []byte("done")}
			})
			result, again = string(b), repeated
			return s
		})
		return result, again, s
	}
	refused := false
	for !refused { // The last segment may be on its way when the first operation is refused.
		for n := 0; tryPut(ss, fmt.Sprint("full:", seq, ":", n), strings.Repeat("x", 300)) == store.OK; n++ {
		}
		for n := 0; tryPut(ss, fmt.Sprint("rest:", seq, ":", n), "x") == store.OK; n++ {
		}
		seq++
		counter = fmt.Sprint("counter:", seq)
		_, _, s := add()
		if refused = s == store.Refused && errors.Is(ss.Err(), device.ErrFull); !refused && s != store.OK {
			t.Fatalf("on a full disk: %v, %v", s, ss.Err())
		}
	}
	if got := get(t, ss, 0, counter); got != "(absent)" {
		t.Fatalf("what was refused is there: %q", got)
	}
	dev.SetCapacity(0)
	await.True(t, "there is room again", func() bool {
		_, again, s := add()
		return s == store.OK && !again
	})
	if result, again, s := add(); s != store.OK || !again || result != "done" || get(t, ss, 0, counter) != "x" {
		t.Fatalf("sent once more: %v, again %v, %q; the key is %q", s, again, result, get(t, ss, 0, counter))
	}
}
