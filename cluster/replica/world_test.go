package replica

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/record"
)

// members is a Membership that tests change.
type members struct {
	mu      sync.Mutex
	living  []Member
	known   map[view.NodeID]bool
	ghosts  map[view.NodeID]view.NodeID
	changed chan struct{}
}

func newMembers(nodes ...Member) *members {
	m := &members{changed: make(chan struct{}), known: map[view.NodeID]bool{"primary": true}}
	for _, n := range nodes {
		m.living = append(m.living, n)
		m.known[n.ID] = true
	}
	return m
}

func (m *members) now() Membership {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Membership{Living: slices.Clone(m.living), Known: len(m.known), Ghosts: m.ghosts, Changed: m.changed}
}

// haunt has a ghost stand for replicas that a node has lost.
func (m *members) haunt(ghost, node view.NodeID) {
	m.mu.Lock()
	m.ghosts = map[view.NodeID]view.NodeID{ghost: node}
	m.mu.Unlock()
	m.change(func(living []Member) []Member { return living })
}

func (m *members) change(f func(living []Member) []Member) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.living = f(slices.Clone(m.living))
	for _, n := range m.living {
		m.known[n.ID] = true
	}
	close(m.changed)
	m.changed = make(chan struct{})
}

func (m *members) leave(node view.NodeID) {
	m.change(func(living []Member) []Member {
		return slices.DeleteFunc(living, func(n Member) bool { return n.ID == node })
	})
}

// none ends all leases at once, and returns who had one.
func (m *members) none() (had []Member) {
	m.change(func(living []Member) []Member {
		had = living
		return nil
	})
	return had
}

func (m *members) join(n Member) {
	m.change(func(living []Member) []Member {
		return append(slices.DeleteFunc(living, func(o Member) bool { return o.ID == n.ID }), n)
	})
}

// book is a Ledger in memory.
type book struct {
	mu      sync.Mutex
	version uint64
	copies  int
	backups map[view.NodeID]bool
	story   []string
	// answer is asked what becomes of the answer to a call that was noted; nil: it arrives.
	answer func(call string) error
	away   atomic.Bool // nobody hears what is added
}

func newBook(copies int) *book {
	return &book{version: 1, copies: copies, backups: map[view.NodeID]bool{}}
}

// note writes down a call, whose answer may be lost.
func (b *book) note(format string, args ...any) error {
	call := fmt.Sprintf(format, args...)
	b.story = append(b.story, call)
	if b.answer == nil {
		return nil
	}
	return b.answer(call)
}

// answers has f decide about the answers to calls from now on.
func (b *book) answers(f func(call string) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answer = f
}

func (b *book) AddBackup(ctx context.Context, n view.NodeID) error {
	if b.away.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.backups[n] = true
	return b.note("add %s", n)
}

func (b *book) Exclude(_ context.Context, n view.NodeID) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.backups, n)
	return b.note("exclude %s", n)
}

func (b *book) RaiseVersion(context.Context) (uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.version++
	return b.version, b.note("version %d", b.version)
}

func (b *book) SetCopies(_ context.Context, n int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.copies = n
	return b.note("copies %d", n)
}

func (b *book) state() (version uint64, copies int, backups []view.NodeID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.version, b.copies, slices.Sorted(maps.Keys(b.backups))
}

// gaveUp is whether a backup was ever excluded.
func (b *book) gaveUp() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.story, func(call string) bool { return strings.HasPrefix(call, "exclude ") })
}

const testLog = record.LogID(0x77)

// writer is a log with several heads, as hlog makes one.
type writer struct {
	t       testing.TB
	p       *Primary
	bytes   int
	advance chan struct{}
	failed  atomic.Pointer[error]

	mu       sync.Mutex // the order of batches
	last     record.BatchID
	nextID   record.SegmentID
	segments map[record.SegmentID][]byte
	ends     map[record.SegmentID]uint32 // of seals
	closed   map[record.SegmentID]hlog.SourceSegment
	adopted  []record.SegmentID // side segments
}

func newWriter(t testing.TB, segmentBytes int) *writer {
	return &writer{
		t: t, bytes: segmentBytes, advance: make(chan struct{}, 1), nextID: 1,
		segments: map[record.SegmentID][]byte{}, ends: map[record.SegmentID]uint32{}, closed: map[record.SegmentID]hlog.SourceSegment{},
	}
}

// source is what the primary gets.
func (w *writer) source() hlog.Source {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := hlog.Source{
		LogID: testLog, SegmentBytes: w.bytes, Heads: 2, Last: w.last,
		Load:     w.load,
		Advanced: func() { poke(w.advance) },
		Failed:   func(err error) { w.failed.Store(&err) },
	}
	for _, id := range slices.Sorted(maps.Keys(w.closed)) {
		s.Segments = append(s.Segments, w.closed[id])
	}
	return s
}

func (w *writer) load(id record.SegmentID) ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if b := w.segments[id]; b != nil {
		return slices.Clone(b), nil
	}
	return nil, errors.New("no such segment")
}

// begin starts the primary on this log.
func (w *writer) begin(p *Primary) {
	w.t.Helper()
	w.p = p
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := p.Begin(ctx, w.source()); err != nil {
		w.t.Fatal(err)
	}
}

// head is an open end of a writer's log. One goroutine uses it.
type head struct {
	w     *writer
	id    record.SegmentID
	mem   []byte
	off   uint32
	chain record.Chain
	spare record.SegmentID

	key   [32]byte
	value []byte
}

// prepare opens a segment at the backups.
func (w *writer) prepare() record.SegmentID {
	w.t.Helper()
	w.mu.Lock()
	id := w.nextID
	w.nextID++
	mem := make([]byte, w.bytes)
	w.segments[id] = mem
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := w.p.Open(ctx, id, mem); err != nil {
		w.t.Error(err)
	}
	return id
}

func (w *writer) head() *head {
	h := &head{w: w, spare: w.prepare()}
	h.take()
	return h
}

func (h *head) take() {
	h.w.mu.Lock()
	h.id, h.mem, h.off = h.spare, h.w.segments[h.spare], 0
	h.w.mu.Unlock()
	h.chain = record.NewChain(h.id)
	h.off = uint32(record.EncodeSegmentHeader(h.mem, testLog, h.id, 0, uint32(h.w.bytes)))
	h.chain.Add(record.PtrOf(h.mem))
}

// write appends one batch of n entries and returns its number.
func (h *head) write(n, valueBytes int) record.BatchID {
	need := n*(record.HeaderBytes+24+valueBytes) + 2*record.SealBytes
	if int(h.off)+need > len(h.mem) {
		h.spare = h.w.prepare() // Before the closing seal.
		h.seal(true)
		h.take()
	}
	if cap(h.value) < valueBytes {
		h.value = make([]byte, valueBytes)
	}
	value := h.value[:valueBytes]
	for i := range n {
		for j := range value {
			value[j] = byte(i + j)
		}
		e := h.mem[h.off:]
		h.off += uint32(record.Encode(e, &record.Header{Type: record.TypePut, Version: uint64(h.off)}, fmt.Appendf(h.key[:0], "key-%016d", i), value, true))
		h.chain.Add(record.PtrOf(e))
	}
	return h.seal(false)
}

func (h *head) seal(closed bool) record.BatchID {
	h.w.mu.Lock()
	h.w.last++
	n := h.w.last
	h.chain.PutSeal(h.mem[h.off:], n, closed)
	from := h.w.ends[h.id]
	h.off += record.SealBytes
	h.w.ends[h.id] = h.off
	if closed {
		h.w.closed[h.id] = hlog.SourceSegment{ID: h.id, End: h.off, Batch: n}
	}
	h.w.mu.Unlock()
	if h.w.p == nil {
		return n // Nobody replicates it.
	}
	h.w.p.Sealed(h.id, from, h.off, n, closed)
	return n
}

// close closes the open segment of a head, as a restart does.
func (h *head) close() { h.seal(true) }

// await returns when the watermark has reached n.
func (w *writer) await(n record.BatchID) {
	w.t.Helper()
	deadline := time.After(time.Minute)
	for w.p.Watermark() < n {
		select {
		case <-w.advance:
		case <-time.After(time.Millisecond): // Another waiter may have taken the news.
		case <-deadline:
			w.t.Fatalf("the watermark stands at %d, want %d; %+v", w.p.Watermark(), n, w.p.Metrics())
		}
	}
}

func seeded(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}
