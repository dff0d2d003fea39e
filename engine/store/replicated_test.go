package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/hlog/hlogtest"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
)

// replicated opens a store with copies elsewhere, and as many sessions on heads
// of their own.
func replicated(t *testing.T, o store.Options) (*store.Store, *hlogtest.Copies, []*store.Session) {
	t.Helper()
	copies := hlogtest.New(t, seedOf(t))
	if o.Device == nil {
		o.Device = device.NewMemory()
	}
	o.Heads, o.Replicator = 8, copies // The sweeper has one, too.
	if o.Durability == store.None {
		o.Durability = store.EverySec
	}
	st := open(t, o)
	t.Cleanup(copies.Flow) // Closing waits for them.
	all := make([]*store.Session, 3)
	for i := range all {
		all[i] = session(t, st)
	}
	return st, copies, all
}

// putSealed writes a value in a round of its own.
func putSealed(t *testing.T, ss *store.Session, key, value string) store.Ticket {
	t.Helper()
	var ticket store.Ticket
	for {
		ss.Begin()
		k := ss.Key(0, []byte(key))
		s := ss.Put(&k, store.Write{Value: []byte(value)}, nil)
		ticket = ss.SealRound()
		ss.End()
		if s == store.OK {
			return ticket
		}
		if s != store.Cold {
			t.Fatal(s, ss.Err())
		}
		if err := ss.Fetch(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}

// getSealed reads a key in a round of its own.
func getSealed(t *testing.T, ss *store.Session, key string) (string, store.Ticket) {
	t.Helper()
	ss.Begin()
	defer ss.End()
	k := ss.Key(0, []byte(key))
	v, s := ss.Get(&k)
	if s != store.OK && s != store.NotFound {
		t.Fatal(s, ss.Err())
	}
	return string(v.Value), ss.SealRound()
}

func waitFor(t *testing.T, ss *store.Session, ticket store.Ticket) {
	t.Helper()
	if err := ss.WaitDurable(ticket); err != nil {
		t.Fatal(err)
	}
}

func TestNothingIsDurableBeforeItIsCopied(t *testing.T) {
	for _, d := range []store.Durability{store.EverySec, store.Always} {
		t.Run(d.String(), func(t *testing.T) {
			st, copies, ss := replicated(t, store.Options{Durability: d})
			waitFor(t, ss[0], putSealed(t, ss[0], "old", "1"))
			copies.Hold()
			ticket := putSealed(t, ss[0], "k", "v")
			if err := st.Checkpoint(context.Background()); err != nil { // Which syncs, too.
				t.Fatal(err)
			}
			if ss[0].Durable(ticket) {
				t.Error("a write is durable that was not copied")
			}
			got, seen := getSealed(t, ss[1], "k")
			if got != "v" || ss[1].Durable(seen) {
				t.Errorf("another session sees %q, and may show it: %v", got, ss[1].Durable(seen))
			}
			getSealed(t, ss[0], "old") // The checkpoint wrote to its head.
			for n, ss := range ss {
				if got, old := getSealed(t, ss, "old"); got != "1" || !ss.Durable(old) {
					t.Errorf("session %d waits to show %q, which is copied", n, got)
				}
			}
			copies.Flow()
			waitFor(t, ss[0], ticket)
			waitFor(t, ss[1], seen)
			if _, seen := getSealed(t, ss[2], "k"); !ss[2].Durable(seen) {
				t.Error("what is copied cannot be shown")
			}
		})
	}
}

func TestADeletionIsShownOnlyWhenItIsCopied(t *testing.T) {
	_, copies, ss := replicated(t, store.Options{})
	waitFor(t, ss[0], putSealed(t, ss[0], "k", "v"))
	copies.Hold()
	ss[0].Begin()
	k := ss[0].Key(0, []byte("k"))
	if s := ss[0].Delete(&k, nil); s != store.OK {
		t.Fatal(s)
	}
	gone := ss[0].SealRound()
	ss[0].End()
	got, told := getSealed(t, ss[1], "k")
	if got != "" || ss[1].Durable(told) || ss[0].Durable(gone) {
		t.Fatalf("another session sees %q, and may tell: %v", got, ss[1].Durable(told))
	}
	copies.Flow()
	waitFor(t, ss[0], gone)
	waitFor(t, ss[1], told)
}

func TestABatchWaitsForThoseBeforeItOnOtherHeads(t *testing.T) {
	_, copies, ss := replicated(t, store.Options{})
	for n, ss := range ss {
		waitFor(t, ss, putSealed(t, ss, fmt.Sprint("warm", n), "up"))
	}
	copies.Hold()
	first := putSealed(t, ss[0], "a", "1")
	firstAt := copies.Behind()
	second := putSealed(t, ss[1], "b", "2")
	secondAt := slices.DeleteFunc(copies.Behind(), func(id record.SegmentID) bool { return slices.Contains(firstAt, id) })
	if len(firstAt) != 1 || len(secondAt) != 1 {
		t.Fatalf("the batches wait in segments %v and %v", firstAt, secondAt)
	}
	copies.CopySegment(secondAt[0])
	if ss[1].Durable(second) {
		t.Fatal("a batch is durable without the one before it")
	}
	copies.CopySegment(firstAt[0])
	waitFor(t, ss[0], first)
	waitFor(t, ss[1], second)
}

func TestOnlyThoseAreWokenWhoseBatchIsCopied(t *testing.T) {
	_, copies, ss := replicated(t, store.Options{})
	for n, ss := range ss {
		warm := putSealed(t, ss, fmt.Sprint("warm", n), "up")
		await.True(t, "it is copied", func() bool { return ss.Durable(warm) })
	}
	var woken [2]atomic.Int64
	for i := range woken {
		ss[i].Notify(func() { woken[i].Add(1) })
	}
	copies.Hold()
	first := putSealed(t, ss[0], "a", "1")
	at := copies.Behind()[0]
	second := putSealed(t, ss[1], "b", "2")
	if ss[0].Durable(first) || ss[1].Durable(second) {
		t.Fatal("durable before it is copied")
	}
	copies.CopySegment(at)
	if woken[0].Load() != 1 || woken[1].Load() != 0 {
		t.Fatalf("woken %d and %d times, want 1 and 0", woken[0].Load(), woken[1].Load())
	}
	copies.Flow()
	await.True(t, "the other is woken", func() bool { return woken[1].Load() == 1 })
}

func TestAWriteWithoutRoomElsewhereWaitsAndHoldsUpNobody(t *testing.T) {
	st, copies, ss := replicated(t, store.Options{SegmentBytes: 4 << 10})
	waitFor(t, ss[0], putSealed(t, ss[0], "k", "v"))
	copies.RefuseOpens(-1)
	value := strings.Repeat("x", 500)
	write := func(n int) store.Status {
		ss[0].Begin()
		defer ss[0].End()
		k := ss[0].Key(0, fmt.Appendf(nil, "key:%d", n))
		s := ss[0].Put(&k, store.Write{Value: []byte(value)}, nil)
		ss[0].Seal()
		return s
	}
	n := 0
	for ; write(n) != store.Cold; n++ {
		if n > 10_000 {
			t.Fatal("segments are taken that are not open elsewhere")
		}
	}
	fetch := ss[0].TakeFetch()
	var ready atomic.Bool
	fetch.Start(func() { ready.Store(true) })
	if got, _ := getSealed(t, ss[1], "k"); got != "v" {
		t.Fatalf("meanwhile a reader sees %q", got)
	}
	if err := st.Health(); err != nil {
		t.Fatal(err)
	}
	if ready.Load() {
		t.Fatal("there is room, though none can be opened")
	}
	copies.RefuseOpens(0)
	await.True(t, "the write may go on", ready.Load)
	ss[0].Resume(fetch)
	if s := write(n); s != store.OK {
		t.Fatal(s, ss[0].Err())
	}
}

func TestStandingCopiesStopWritesWhenMemoryIsFullAndLoseNone(t *testing.T) {
	_, copies, ss := replicated(t, store.Options{SegmentBytes: 4 << 10, MemoryBytes: 256 << 10})
	value := strings.Repeat("x", 500)
	putSealed(t, ss[0], "first", value)
	copies.Hold()
	var fetch *store.Fetch
	n := 0
	for ; fetch == nil; n++ {
		ss[0].Begin()
		k := ss[0].Key(0, fmt.Appendf(nil, "key:%d", n))
		s := ss[0].Put(&k, store.Write{Value: []byte(value)}, nil)
		ss[0].Seal()
		ss[0].End()
		switch {
		case s == store.Cold:
			fetch = ss[0].TakeFetch()
		case s != store.OK:
			t.Fatalf("write %d: %v %v", n, s, ss[0].Err())
		case n > 10_000:
			t.Fatal("memory is given back that is not copied")
		}
	}
	var ready atomic.Bool
	fetch.Start(func() { ready.Store(true) })
	copies.Flow()
	await.True(t, "the write may go on", ready.Load)
	for i := range n - 1 {
		if got := get(t, ss[1], 0, fmt.Sprintf("key:%d", i)); got != value {
			t.Fatalf("key %d is %.20q", i, got)
		}
	}
}

func TestADeposedStoreRefusesWritesAndSendsAwayWhoWaits(t *testing.T) {
	st, copies, ss := replicated(t, store.Options{})
	waitFor(t, ss[1], putSealed(t, ss[1], "k", "v"))
	copies.Hold()
	var woken atomic.Bool
	ss[0].Notify(func() { woken.Store(true) })
	ticket := putSealed(t, ss[0], "k2", "v2")
	if ss[0].Durable(ticket) {
		t.Fatal("durable before it is copied")
	}
	waits := make(chan error)
	go func() {
		got, seen := getSealed(t, ss[2], "k2")
		if got != "v2" {
			t.Errorf("a reader sees %q", got)
		}
		waits <- ss[2].WaitDurable(seen)
	}()
	deposed := errors.New("another node has this log now")
	copies.Break(deposed)
	if err := <-waits; !errors.Is(err, deposed) {
		t.Fatalf("who waits is told %v", err)
	}
	if !woken.Load() || !errors.Is(st.Health(), deposed) {
		t.Fatalf("woken: %v, health: %v", woken.Load(), st.Health())
	}
	ss[1].Begin()
	k := ss[1].Key(0, []byte("k"))
	if s := ss[1].Put(&k, store.Write{Value: []byte("no")}, nil); s != store.Failed || !errors.Is(ss[1].Err(), deposed) {
		t.Errorf("a write: %v %v", s, ss[1].Err())
	}
	ss[1].End()
	if got, seen := getSealed(t, ss[1], "k"); got != "v" || !ss[1].Durable(seen) {
		t.Errorf("what was copied reads %q", got)
	}
	if ss[0].Durable(ticket) {
		t.Error("durable after all")
	}
}

func TestAWaitForRoomEndsWhenCopiesCanNeverBeMade(t *testing.T) {
	_, copies, ss := replicated(t, store.Options{SegmentBytes: 4 << 10})
	waitFor(t, ss[0], putSealed(t, ss[0], "k", "v"))
	copies.RefuseOpens(-1)
	put := func(key string) store.Status {
		k := ss[0].Key(0, []byte(key))
		return ss[0].Put(&k, store.Write{Value: make([]byte, 1000)}, nil)
	}
	s := store.OK
	ss[0].Begin()
	for n := 0; s == store.OK; n++ {
		s = put(fmt.Sprint(n))
	}
	ss[0].Seal()
	ss[0].End()
	if s != store.Cold {
		t.Fatal(s, ss[0].Err())
	}
	over := make(chan error)
	go func() { over <- ss[0].Fetch(context.Background()) }()
	copies.Break(errors.New("deposed"))
	if err := <-over; err != nil {
		t.Fatal(err)
	}
	ss[0].Begin()
	defer ss[0].End()
	if s := put("more"); s != store.Failed {
		t.Fatal(s)
	}
}

func TestACleanedSegmentStaysUntilItsCopiesAreDropped(t *testing.T) {
	dev := device.NewMemory()
	st, copies, ss := replicated(t, store.Options{Device: dev, SegmentBytes: 4 << 10})
	copies.RefuseDrops(-1)
	churn := func(n int) {
		for i := range n {
			putSealed(t, ss[0], fmt.Sprint("key:", i%5), strings.Repeat("x", 500))
		}
	}
	churn(400)
	await.True(t, "segments are cleaned", func() bool { return st.Metrics().RelocatedBytes > 0 || st.Metrics().LogBytes > 40*4096 })
	files := func() int {
		ids, err := dev.List()
		if err != nil {
			t.Fatal(err)
		}
		return len(ids)
	}
	if n := files(); n < 40 || st.Metrics().CleanedSegments != 0 || copies.Dropped() != 0 {
		t.Fatalf("%d files are left of 50, %d were cleaned away", n, st.Metrics().CleanedSegments)
	}
	copies.RefuseDrops(0)
	await.True(t, "the files go", func() bool { return files() < 35 })
	if st.Metrics().CleanedSegments == 0 || copies.Dropped() == 0 {
		t.Fatal("nothing was dropped")
	}
}

func TestCopiesOfCleanedSegmentsStayWhileSomebodyReadsThem(t *testing.T) {
	st, copies, ss := replicated(t, store.Options{Device: device.NewMemory(), SegmentBytes: 4 << 10})
	st.Keep(true)
	for i := range 400 {
		putSealed(t, ss[0], fmt.Sprint("key:", i%5), strings.Repeat("x", 500))
	}
	await.True(t, "segments are cleaned", func() bool { return st.Metrics().RelocatedBytes > 0 || st.Metrics().LogBytes > 40*4096 })
	if n := copies.Dropped(); n != 0 || st.Metrics().CleanedSegments != 0 {
		t.Fatalf("%d copies were dropped, and %d segments", n, st.Metrics().CleanedSegments)
	}
	st.Keep(false)
	await.True(t, "the copies go", func() bool { return copies.Dropped() > 20 })
}

func TestNoIDIsGivenToTwoSegments(t *testing.T) {
	dev := device.NewMemory()
	o := store.Options{Device: dev, SegmentBytes: 4 << 10, Heads: 2, Durability: store.EverySec}
	copies := hlogtest.New(t, seedOf(t)) // It complains of an id that comes twice.
	for life := range 4 {
		o.Replicator = copies
		st, err := store.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		ss, err := st.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		for n := range 200 {
			putSealed(t, ss, fmt.Sprint("key:", n%5), strings.Repeat("x", 500))
		}
		if got := get(t, ss, 0, "key:3"); len(got) != 500 {
			t.Fatalf("life %d: %q", life, got)
		}
		ss.Close()
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		copies = copies.Next()
	}
}

func TestALifeBeginsWithAllThatTheFormerLeft(t *testing.T) {
	dev := device.NewMemory()
	o := store.Options{Device: dev, SegmentBytes: 4 << 10, Heads: 2, Durability: store.EverySec}
	st := open(t, o)
	ss := session(t, st)
	const keys = 8000 // far more than what is kept in memory below
	for n := range keys {
		put(t, ss, 0, fmt.Sprint("key:", n), fmt.Sprint(n), 0)
	}
	o.Device = dev.Crash()
	o.MemoryBytes = 128 << 10
	copies := hlogtest.New(t, seedOf(t))
	o.Replicator = copies
	again := open(t, o)
	left, err := copies.Lost(o.Device.(*device.Memory), "identity.json", "tables.json")
	if err != nil {
		t.Fatal(err)
	}
	if m := again.Metrics(); m.SegmentsOnDisk < 2*m.SegmentsInMemory {
		t.Fatalf("%d segments of %d are in memory: none is cold", m.SegmentsInMemory, m.SegmentsOnDisk)
	}
	o.Device, o.Replicator, o.MemoryBytes = left, nil, 0
	reader := session(t, open(t, o))
	for n := range keys {
		if got := get(t, reader, 0, fmt.Sprint("key:", n)); got != fmt.Sprint(n) {
			t.Fatalf("key %d is %q in the copies", n, got)
		}
	}
}

// A floor is noted elsewhere: whatever is left of the log, its next life must not draw the numbers of what is above it for what lies below.
func TestALaterLifeGoesOnFromASettledPosition(t *testing.T) {
	dev := device.NewMemory()
	st, copies, ss := replicated(t, store.Options{Device: dev, SegmentBytes: 64 << 10})
	copies.Hold()
	for n := range 20 {
		putSealed(t, ss[n%len(ss)], fmt.Sprint("key:", n), "v")
	}
	goneOnFrom := func() record.BatchID {
		left, err := copies.Lost(dev, "identity.json", "tables.json")
		if err != nil {
			t.Fatal(err)
		}
		batch, _ := open(t, store.Options{Device: left, SegmentBytes: 64 << 10, Durability: store.EverySec}).Position()
		return batch
	}
	if now, _ := st.Position(); goneOnFrom() >= now {
		t.Fatal("nothing would have been lost")
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if batch, _, err := st.SettledPosition(over); err == nil {
		t.Fatalf("%d is settled without a copy", batch)
	}
	copies.Flow()
	batch, _, err := st.SettledPosition(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	copies.Hold()
	if from := goneOnFrom(); from < batch {
		t.Errorf("another life goes on from batch %d, and %d was settled", from, batch)
	}
}

// closings counts how often a replicator is closed.
type closings struct {
	*hlogtest.Copies
	n     atomic.Int64
	begin error
}

func (c *closings) Begin(ctx context.Context, s hlog.Source) error {
	if c.begin != nil {
		return c.begin
	}
	return c.Copies.Begin(ctx, s)
}

func (c *closings) Close() error {
	c.n.Add(1)
	return c.Copies.Close()
}

func TestAReplicatorIsClosedOnceWhateverHappens(t *testing.T) {
	refused := errors.New("no backups")
	for name, c := range map[string]struct {
		o     store.Options
		begin error
	}{
		"in good order":     {store.Options{Device: device.NewMemory(), Durability: store.EverySec}, nil},
		"begin fails":       {store.Options{Device: device.NewMemory(), Durability: store.EverySec}, refused},
		"options are wrong": {store.Options{Durability: store.None}, nil},
		"no directory":      {store.Options{Dir: os.DevNull + "/none", Durability: store.EverySec}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := &closings{Copies: hlogtest.New(t, 1), begin: c.begin}
			c.o.Replicator = r
			st, err := store.Open(c.o)
			if err == nil {
				err = st.Close()
			}
			if name == "in good order" && err != nil || c.begin != nil && !errors.Is(err, c.begin) || name != "in good order" && err == nil {
				t.Errorf("got %v", err)
			}
			if n := r.n.Load(); n != 1 {
				t.Errorf("closed %d times", n)
			}
		})
	}
}

func TestAStoreThatClosesWaitsForItsCopies(t *testing.T) {
	dev := device.NewMemory()
	copies := hlogtest.New(t, seedOf(t))
	st, err := store.Open(store.Options{Device: dev, Durability: store.EverySec, Replicator: copies})
	if err != nil {
		t.Fatal(err)
	}
	ss, err := st.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	copies.Hold()
	putSealed(t, ss, "k", "v")
	ss.Close()
	over := make(chan error)
	go func() { over <- st.Close() }()
	copies.Flow()
	if err := <-over; err != nil {
		t.Fatal(err)
	}
	if late := copies.Behind(); len(late) > 0 {
		t.Fatalf("closed while copies of %v are behind", late)
	}
}

func TestAFullDiskRefusesCopiedWritesAndLosesNothing(t *testing.T) {
	dev := device.NewMemory()
	dev.SetCapacity(800 << 10)
	_, _, ss := replicated(t, store.Options{Device: dev, SegmentBytes: 16 << 10})
	value := strings.Repeat("x", 300)
	there, s := 0, store.OK
	for ; s == store.OK; there++ {
		if there > 20000 {
			t.Fatal("the disk is never full")
		}
		s = tryPut(ss[0], fmt.Sprintf("full:%d", there), value)
	}
	there--
	if s != store.Refused || !errors.Is(ss[0].Err(), device.ErrFull) {
		t.Fatalf("on a full disk: %v, %v", s, ss[0].Err())
	}
	if got := get(t, ss[0], 0, fmt.Sprintf("full:%d", there)); got != "(absent)" {
		t.Fatalf("what was refused is there: %.20q", got)
	}
	dev.SetCapacity(0)
	await.True(t, "writing works again", func() bool { return tryPut(ss[0], "again", "yes") == store.OK })
	for n := range there {
		if got := get(t, ss[0], 0, fmt.Sprintf("full:%d", n)); got != value {
			t.Fatalf("afterwards key %d is %.20q", n, got)
		}
	}
}

func TestWhatIsToFollowGuardsWaitsForAllOfThem(t *testing.T) {
	st := open(t, store.Options{})
	one, other := session(t, st), session(t, st)
	var ran atomic.Int64
	st.AfterGuards(func() { ran.Add(1) })
	await.True(t, "it runs while nobody is inside", func() bool { return ran.Load() == 1 })
	one.Begin()
	other.Begin()
	st.AfterGuards(func() { ran.Add(1) })
	one.End()
	one.Begin() // Of the new state: it holds nothing up.
	if ran.Load() != 1 {
		t.Fatal("it ran while a session was inside")
	}
	other.End()
	await.True(t, "it runs when all have passed", func() bool { return ran.Load() == 2 })
	one.End()
}

func TestALargeValueWaitsForRoomElsewhereAsAnyOther(t *testing.T) {
	_, copies, ss := replicated(t, store.Options{SegmentBytes: 4 << 10})
	waitFor(t, ss[0], putSealed(t, ss[0], "k", "v"))
	copies.RefuseOpens(-1)
	for _, pieces := range []int{2, 5, 40} { // The last is more than what is ever ready at once.
		value := []byte(strings.Repeat("0123456789abcdef", pieces*4096/32))
		key := fmt.Appendf(nil, "large:%d", pieces)
		put := func() store.Status {
			ss[0].Begin()
			defer ss[0].End()
			k := ss[0].Key(0, key)
			s := ss[0].Put(&k, store.Write{Value: value}, nil)
			ss[0].Seal()
			return s
		}
		if pieces < 40 {
			for n := 0; put() != store.Cold; n++ {
				if n > 1000 {
					t.Fatal("segments are taken that are not open elsewhere")
				}
			}
		}
		copies.RefuseOpens(0)
		if s := until(t, ss[0], putOf(ss[0], key, value)); s != store.OK {
			t.Fatal(s, ss[0].Err())
		}
		if got := get(t, ss[1], 0, string(key)); got != string(value) {
			t.Fatalf("a value of %d bytes reads %.30q", len(value), got)
		}
		copies.RefuseOpens(-1)
	}
	copies.RefuseOpens(0)
}

func putOf(ss *store.Session, key, value []byte) func() store.Status {
	return func() store.Status {
		k := ss.Key(0, key)
		return ss.Put(&k, store.Write{Value: value}, nil)
	}
}

func TestWhatACommandDidBeforeItHadToWaitCountsForItsReply(t *testing.T) {
	_, copies, ss := replicated(t, store.Options{})
	waitFor(t, ss[0], putSealed(t, ss[0], "old", "1"))
	copies.Hold()
	first := putSealed(t, ss[0], "k", "v") // And then it finds a key that is cold.
	fetch := ss[0].TakeFetch()
	var ready atomic.Bool
	fetch.Start(func() { ready.Store(true) })
	await.True(t, "the fetch ends", ready.Load)
	if _, other := getSealed(t, ss[0], "old"); !ss[0].Durable(other) {
		t.Error("another command waits, too")
	}
	for n, ss := range ss[:2] { // Its connection may have another session by now.
		ss.Resume(fetch)
		if _, reply := getSealed(t, ss, "old"); ss.Durable(reply) {
			t.Errorf("session %d replies before the command's first write is copied", n)
		}
	}
	copies.Flow()
	waitFor(t, ss[0], first)
}
