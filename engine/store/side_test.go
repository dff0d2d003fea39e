package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/hlog/hlogtest"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
)

// bringing is a session beside the others, and its side.
type bringing struct {
	ss   *store.Session
	side *hlog.Side
}

func bring(t testing.TB, st *store.Store) *bringing {
	t.Helper()
	ss, side, err := st.NewSideSession()
	if err != nil {
		t.Fatal(err)
	}
	return &bringing{ss, side}
}

// put brings a record.
func (b *bringing) put(key, value string) error {
	for {
		b.ss.Begin()
		k := b.ss.Key(0, []byte(key))
		s := b.ss.Put(&k, store.Write{Value: []byte(value)}, nil)
		ticket := b.ss.Seal()
		b.ss.End()
		switch {
		case s == store.OK && !b.ss.Durable(ticket):
			return errors.New("what is safe elsewhere waits for copies")
		case s == store.OK:
			return nil
		case s != store.Cold:
			return fmt.Errorf("%v: %w", s, b.ss.Err())
		}
		if err := b.ss.Fetch(context.Background()); err != nil {
			return err
		}
	}
}

// fill brings as many records, each with a value of its own.
func (b *bringing) fill(t testing.TB, prefix string, records int) {
	t.Helper()
	for n := range records {
		if err := b.put(fmt.Sprint(prefix, n), broughtValue(prefix, n)); err != nil {
			t.Fatal(err)
		}
	}
}

func broughtValue(prefix string, n int) string {
	return fmt.Sprintf("%s%d is here: %s", prefix, n, strings.Repeat("x", n%200))
}

// close ends it, and returns when all of it is part of the log.
func (b *bringing) close(t testing.TB) {
	t.Helper()
	b.ss.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := b.side.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

// hasAll fails unless all records of a prefix are there.
func hasAll(t testing.TB, what string, ss *store.Session, prefix string, records int) {
	t.Helper()
	for n := range records {
		if got := readAll(t, ss, fmt.Sprint(prefix, n)); got != broughtValue(prefix, n) {
			t.Fatalf("%s: %s%d is %q", what, prefix, n, got)
		}
	}
}

// readAll reads a key, wherever it is.
func readAll(t testing.TB, ss *store.Session, key string) string {
	t.Helper()
	for {
		ss.Begin()
		k := ss.Key(0, []byte(key))
		v, s := ss.Get(&k)
		got := string(v.Value)
		ss.End()
		switch s {
		case store.OK, store.NotFound:
			return got
		case store.Cold:
			if err := ss.Fetch(context.Background()); err != nil {
				t.Fatal(err)
			}
		default:
			t.Fatal(s, ss.Err())
		}
	}
}

func TestWhatASideBringsIsShownThoughNothingIsCopied(t *testing.T) {
	st, copies, ss := replicated(t, store.Options{SegmentBytes: 4 << 10})
	waitFor(t, ss[0], putSealed(t, ss[0], "k", "v"))
	copies.Hold()
	copies.RefuseAdopts(-1)
	b := bring(t, st)
	b.fill(t, "s:", 100)
	hasAll(t, "while nothing is copied", ss[1], "s:", 100)
	got, seen := getSealed(t, ss[1], "s:7")
	if got != broughtValue("s:", 7) || !ss[1].Durable(seen) {
		t.Errorf("a reader sees %q, and may show it: %v", got, ss[1].Durable(seen))
	}
	late := putSealed(t, ss[0], "late", "1")
	if ss[0].Durable(late) {
		t.Error("a write of the log is durable that was not copied")
	}
	copies.RefuseAdopts(0)
	b.close(t) // Whatever the log waits for.
	if copies.Adopted() == 0 || ss[0].Durable(late) {
		t.Errorf("%d segments are adopted; a write that was not copied is durable: %v", copies.Adopted(), ss[0].Durable(late))
	}
	copies.Flow()
	waitFor(t, ss[0], late)
}

func TestASideThatCannotBeCopiedSaysWhyAndIsTriedAgain(t *testing.T) {
	st, copies, ss := replicated(t, store.Options{SegmentBytes: 4 << 10})
	copies.RefuseAdopts(-1)
	b := bring(t, st)
	b.fill(t, "s:", 100)
	b.ss.Close()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.side.Close(ctx) }()
	await.True(t, "it is refused", func() bool { return copies.RefusedAdopts() > 3 })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || !strings.Contains(fmt.Sprint(err), "refused for a while") {
		t.Fatalf("the end of a side that cannot be copied: %v", err)
	}
	if b.side.Pending() == 0 || copies.Adopted() > 0 {
		t.Fatalf("%d segments wait, %d are adopted", b.side.Pending(), copies.Adopted())
	}
	copies.RefuseAdopts(0)
	b.close(t)
	if b.side.Pending() != 0 || copies.Adopted() == 0 {
		t.Fatalf("%d segments wait, %d are adopted", b.side.Pending(), copies.Adopted())
	}
	hasAll(t, "in the end", ss[0], "s:", 100)
}

func TestMemoryIsSpilledThoughSideSegmentsLackCopies(t *testing.T) {
	const limit = 512 << 10
	st, copies, ss := replicated(t, store.Options{SegmentBytes: 16 << 10, MemoryBytes: limit, Policy: store.Spill})
	copies.RefuseAdopts(-1)
	b := bring(t, st)
	records := 0
	for bytes := 0; bytes < 3*limit; records++ {
		value := broughtValue("s:", records)
		if err := b.put(fmt.Sprint("s:", records), value); err != nil {
			t.Fatal(err)
		}
		bytes += len(value) + 50
		if records%500 == 0 { // Others write meanwhile.
			waitFor(t, ss[0], putSealed(t, ss[0], fmt.Sprint("m:", records), "1"))
		}
	}
	hasAll(t, "though all is spilled", ss[1], "s:", records)
	copies.RefuseAdopts(0)
	b.close(t)
	hasAll(t, "when it is part of the log", ss[1], "s:", records)
}

func TestASideThatWasCalledOffIsNotCopied(t *testing.T) {
	st, copies, ss := replicated(t, store.Options{SegmentBytes: 4 << 10})
	copies.RefuseAdopts(-1)
	b := bring(t, st)
	b.fill(t, "s:", 100)
	for n := range 100 {
		deleteSealed(t, ss[0], fmt.Sprint("s:", n))
	}
	await.True(t, "nothing waits that has nothing alive", func() bool { return b.side.Pending() == 0 })
	copies.RefuseAdopts(0) // Until then those of an attempt from before may have been alive.
	b.close(t)
	if n := copies.Adopted(); n > 0 {
		t.Errorf("%d segments with nothing alive were copied", n)
	}
}

func TestASideIsNotOverBeforeWhatReplacedItsRecordsIsCopied(t *testing.T) {
	st, copies, ss := replicated(t, store.Options{SegmentBytes: 4 << 10})
	waitFor(t, ss[0], putSealed(t, ss[0], "k", "v"))
	b := bring(t, st)
	b.fill(t, "s:", 1)
	copies.Hold()
	late := putSealed(t, ss[0], "s:0", "another") // All that was brought is dead.
	b.ss.Close()
	done := make(chan error, 1)
	go func() { done <- b.side.Close(context.Background()) }()
	await.True(t, "it is closed", func() bool { return b.side.Pending() > 0 })
	for range 1000 { // It has every chance to be wrong.
		select {
		case err := <-done:
			t.Fatalf("the side is over (%v), and neither its record nor what replaced it is copied; durable: %v", err, ss[0].Durable(late))
		default:
			runtime.Gosched()
		}
	}
	copies.Flow()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if !ss[0].Durable(late) {
		t.Error("the side is over before what replaced its record is copied")
	}
}

func TestARecordThatWasBroughtAndDeletedBeforeASnapshotStaysDeleted(t *testing.T) {
	dev := device.NewMemory()
	st, _, ss := replicated(t, store.Options{Device: dev})
	b := bring(t, st)
	b.fill(t, "s:", 10)
	waitFor(t, ss[0], deleteSealed(t, ss[0], "s:5"))
	if err := st.Checkpoint(context.Background()); err != nil {
		t.Fatal(err)
	}
	b.fill(t, "more:", 10) // The side goes on.
	b.close(t)
	clone := dev.Crash()
	t.Cleanup(clone.Close)
	next := session(t, open(t, store.Options{Device: clone, Durability: store.EverySec}))
	if got := readAll(t, next, "s:5"); got != "" {
		t.Errorf("it is back: %q", got)
	}
	hasAll(t, "brought before the snapshot", next, "s:", 5)
	hasAll(t, "brought after the snapshot", next, "more:", 10)
}

// haul is a store into which records are brought beside the log, by one bringing after
// the other, while others write to the log and delete some of what was brought.
type haul struct {
	t      *testing.T
	o      store.Options
	dev    *device.Memory
	copies *hlogtest.Copies
	st     *store.Store
	life   int

	keys [8]struct{ acked, issued atomic.Int64 } // of the log

	mu      sync.Mutex
	adopted map[string]int  // records of bringings that are over
	brought map[string]int  // of all, over or not
	removed map[string]bool // what may be gone; true: must be, whatever dies but the power
}

const haulRecords = 120

func (h *haul) open(dev *device.Memory, copies *hlogtest.Copies) {
	h.t.Helper()
	h.dev, h.copies = dev, copies
	h.life++
	o := h.o
	o.Device, o.Replicator = dev, copies
	var err error
	if h.st, err = store.Open(o); err != nil {
		h.t.Fatal(err)
	}
}

// write writes to one key of the log again and again.
func (h *haul) write(n int, stop *atomic.Bool) {
	ss, err := h.st.NewSession()
	if err != nil {
		h.t.Error(err)
		return
	}
	defer ss.Close()
	k := &h.keys[n]
	for !stop.Load() && !h.t.Failed() {
		v := k.issued.Add(1)
		ticket := putSealed(h.t, ss, fmt.Sprint("m:", n), fmt.Sprint(v))
		if ss.WaitDurable(ticket) == nil {
			k.acked.Store(v)
		}
		pace(h.t, h.dev, 400*h.o.SegmentBytes, stop)
	}
}

// bring brings, one bringing after the other.
func (h *haul) bring(who int, rng *rand.Rand, stop *atomic.Bool) {
	before := 0
	for gen := 0; !stop.Load() && !h.t.Failed(); gen++ {
		prefix := fmt.Sprintf("s:%d.%d.%d:", h.life, who, gen)
		b := bring(h.t, h.st)
		n := 1 + rng.IntN(haulRecords)
		h.mu.Lock()
		h.brought[prefix] = n
		h.mu.Unlock()
		b.fill(h.t, prefix, n)
		b.ss.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		err := b.side.Close(ctx)
		cancel()
		if err != nil {
			h.t.Error(err)
			return
		}
		h.mu.Lock()
		h.adopted[prefix] = n
		h.mu.Unlock()
		h.remove(prefix, n/2, n)
		if last := fmt.Sprintf("s:%d.%d.%d:", h.life, who, gen-1); gen > 0 {
			h.remove(last, 0, before)
		}
		before = n
		pace(h.t, h.dev, 400*h.o.SegmentBytes, stop)
	}
}

// remove deletes records that were brought.
func (h *haul) remove(prefix string, from, to int) {
	ss, err := h.st.NewSession()
	if err != nil {
		h.t.Error(err)
		return
	}
	defer ss.Close()
	var ticket store.Ticket
	for n := from; n < to; n++ {
		h.note(prefix, n, n+1, false)
		ticket = deleteSealed(h.t, ss, fmt.Sprint(prefix, n))
	}
	if ss.WaitDurable(ticket) == nil {
		h.note(prefix, from, to, true)
	}
}

// note notes that records are being removed, or that they are.
func (h *haul) note(prefix string, from, to int, sure bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for n := from; n < to; n++ {
		key := fmt.Sprint(prefix, n)
		h.removed[key] = sure || h.removed[key]
	}
}

// deleteSealed deletes a key in a round of its own, if it is there.
func deleteSealed(t testing.TB, ss *store.Session, key string) store.Ticket {
	for {
		ss.Begin()
		k := ss.Key(0, []byte(key))
		s := ss.Delete(&k, nil)
		ticket := ss.Seal()
		ss.End()
		switch s {
		case store.OK, store.NotFound:
			return ticket
		case store.Cold:
			if err := ss.Fetch(context.Background()); err != nil {
				t.Error(err)
				return ticket
			}
		default:
			t.Error(s, ss.Err())
			return ticket
		}
	}
}

// fates is what must be so after a death.
type fates struct {
	acked    [8]int64
	adopted  map[string]int
	must     map[string]bool // be removed
	powerful bool            // the power failed: what only memory and copies had is gone
}

func (h *haul) fates(power bool) fates {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := fates{adopted: map[string]int{}, must: map[string]bool{}, powerful: power}
	for n := range h.keys {
		f.acked[n] = h.keys[n].acked.Load()
	}
	for p, n := range h.adopted {
		f.adopted[p] = n
	}
	for k, sure := range h.removed {
		f.must[k] = sure
	}
	return f
}

// die clones the device, or what is left of it elsewhere, and says what must be there.
func (h *haul) die(rng *rand.Rand) (string, *device.Memory, fates) {
	switch rng.IntN(3) {
	case 0:
		f := h.fates(false)
		return "killed", h.dev.Crash(), f
	case 1:
		f := h.fates(true)
		return "unplugged", h.dev.PowerLoss(rng), f
	default:
		f := h.fates(false)
		left, err := h.copies.Lost(h.dev, "identity.json", "tables.json")
		if err != nil {
			h.t.Error(err)
		}
		return "lost", left, f
	}
}

// verify opens what a death left, and looks.
func (h *haul) verify(what string, dev *device.Memory, f fates) {
	h.t.Helper()
	o := h.o
	o.Device = dev
	st, err := store.Open(o)
	if err != nil {
		h.t.Errorf("%s: %v", what, err)
		return
	}
	ss, err := st.NewSession()
	if err != nil {
		h.t.Fatal(err)
	}
	h.look(what, ss, f)
	ss.Close()
	if err := st.Close(); err != nil {
		h.t.Error(err)
	}
	dev.Close()
}

func (h *haul) look(what string, ss *store.Session, f fates) {
	h.t.Helper()
	for n := range h.keys {
		v, _ := strconv.ParseInt(readAll(h.t, ss, fmt.Sprint("m:", n)), 10, 64)
		if most := h.keys[n].issued.Load(); v > most || v < f.acked[n] && !f.powerful {
			h.t.Errorf("%s: key %d of the log is %d, want %d to %d", what, n, v, f.acked[n], most)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for prefix, records := range h.brought {
		for n := range records {
			h.lookAt(what, ss, f, prefix, n)
		}
	}
}

// lookAt looks at one record that was brought.
func (h *haul) lookAt(what string, ss *store.Session, f fates, prefix string, n int) {
	key := fmt.Sprint(prefix, n)
	got := readAll(h.t, ss, key)
	_, maybe := h.removed[key] // By now.
	switch {
	case got != "" && got != broughtValue(prefix, n):
		h.t.Errorf("%s: %s is %q", what, key, got)
	case got != "" && f.must[key] && !f.powerful:
		h.t.Errorf("%s: %s was removed, and is there", what, key)
	case got == "" && n < f.adopted[prefix] && !maybe:
		h.t.Errorf("%s: %s was part of the log, and is gone", what, key)
	}
}

func TestSideSegmentsThatWereAdoptedAreThereAfterAnyDeathAndTheLogIsWhole(t *testing.T) {
	t.Parallel()
	forReplicatedConfigs(t, func(t *testing.T, o store.Options) {
		seed := seedOf(t)
		rng := rand.New(rand.NewPCG(seed, 5))
		o.Heads = 10
		h := &haul{t: t, o: o, adopted: map[string]int{}, brought: map[string]int{}, removed: map[string]bool{}}
		h.open(device.NewMemory(), hlogtest.New(t, seed))
		for life := range 1 + scale(1) {
			dev, next, f := h.suffer(rng, life)
			old := h.dev
			if err := h.st.Close(); err != nil && !t.Failed() {
				t.Error(err)
			}
			old.Close()
			if t.Failed() {
				dev.Close()
				return
			}
			h.open(dev, next)
			ss := session(t, h.st)
			h.look(fmt.Sprint("life ", life+1), ss, f)
			ss.Close()
			for n := range h.keys { // What was not acknowledged may be gone for good.
				h.keys[n].acked.Store(0)
			}
			h.forget()
		}
		if err := h.st.Close(); err != nil {
			t.Error(err)
		}
		h.dev.Close()
	})
}

// forget begins anew with what a new life has found.
func (h *haul) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.adopted, h.brought, h.removed = map[string]int{}, map[string]int{}, map[string]bool{}
}

// suffer lets all work go on while clones are looked at, and returns the last one with what is
// copied of it by then.
func (h *haul) suffer(rng *rand.Rand, life int) (dev *device.Memory, next *hlogtest.Copies, f fates) {
	var stop atomic.Bool
	var all sync.WaitGroup
	defer all.Wait()
	defer stop.Store(true)
	defer h.copies.Flow()
	defer h.copies.RefuseAdopts(0)
	for n := range h.keys {
		all.Go(func() { h.write(n, &stop) })
	}
	for who := range 2 {
		mine := rand.New(rand.NewPCG(rng.Uint64(), 1))
		all.Go(func() { h.bring(who, mine, &stop) })
	}
	for n := range 2 + scale(4) {
		annoy(h.copies, rng)
		h.copies.RefuseAdopts(rng.IntN(3))
		if rng.IntN(2) == 0 {
			if err := h.st.Checkpoint(context.Background()); err != nil {
				h.t.Error(err)
			}
		}
		had := h.copies.Adopted()
		h.copies.Flow()
		await.True(h.t, "something is adopted", func() bool { return h.copies.Adopted() > had || h.t.Failed() })
		h.copies.Check()
		name, clone, f := h.die(rng)
		h.verify(fmt.Sprintf("%s, life %d, clone %d", name, life, n), clone, f)
	}
	f, next = h.fates(false), h.copies.Next()
	return h.dev.Crash(), next, f
}

// What waits for its file is in memory and safe elsewhere: so what a migration brings to a node whose disk is full refuses nobody's writes.
func TestSideSegmentsWaitForADiskThatIsFullAndEndNothing(t *testing.T) {
	for name, copied := range map[string]bool{"copied": true, "alone": false} {
		t.Run(name, func(t *testing.T) {
			const records = 500
			dev := device.NewMemory()
			o := store.Options{Device: dev, Durability: store.EverySec, SegmentBytes: 16 << 10, Heads: 1}
			if copied {
				o.Replicator = hlogtest.New(t, seedOf(t))
			}
			st, err := store.Open(o)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = st.Close() }()
			ss := session(t, st)
			put(t, ss, 0, "before", "yes", 0)

			dev.SetCapacity(1)
			b := bring(t, st)
			b.fill(t, "s:", records)
			b.ss.Close()
			await.True(t, "it is told that segments have no files", func() bool {
				over, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				return errors.Is(b.side.Close(over), device.ErrFull)
			})
			put(t, ss, 0, "meanwhile", "yes", 0)
			if _, err := st.Settle(t.Context()); err != nil {
				t.Errorf("a write is not durable: %v", err)
			}
			if err := st.Checkpoint(t.Context()); !errors.Is(err, device.ErrFull) {
				t.Errorf("an index is saved with %v", err)
			}
			if err := st.Health(); err != nil {
				t.Errorf("the store says that it is broken: %v", err)
			}
			hasAll(t, "on a full disk", ss, "s:", records)

			dev.SetCapacity(0)
			if err := b.side.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			o.Replicator, o.Device = nil, dev.Crash()
			again := session(t, open(t, o))
			hasAll(t, "after a crash", again, "s:", records)
			for _, key := range []string{"before", "meanwhile"} {
				if got := get(t, again, 0, key); got != "yes" {
					t.Errorf("%s is %q", key, got)
				}
			}
		})
	}
}
