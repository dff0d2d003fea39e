package ostropebble

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/ostrodb/ostro/cluster/txn"
)

// writer is the front end's end of the journal: the sink of its write-ahead logs.
//
// Invariant: tail - floor never exceeds the ring. The floor is a position that
// every replica has in a base on its disk, so what is written over is needed by nobody.
type writer struct {
	log       *txn.Log
	followers []Follower
	session   uint64
	ring      uint64
	ctx       context.Context // over when the database is closed
	cancel    context.CancelFunc

	// Of the one goroutine that writes Pebble's log.
	tail uint64
	next piece        // what is not on its way yet
	last *txn.Pending // the last piece that is; those before it end earlier
	most int          // bytes of a piece

	mu     sync.Mutex
	floor  uint64
	asking bool
	asked  sync.WaitGroup
}

// mostBytes is the longest piece; what Pebble writes without a sync is cut.
const mostBytes = 256 << 10

// newWriter finds the journal in the data area, or makes it.
func newWriter(ctx context.Context, log *txn.Log, source int, followers []Follower) (*writer, error) {
	if log.DataBytes() < ringAt+64<<10 {
		return nil, fmt.Errorf("pebble: a data area of %d bytes is too small; give replicas some megabytes", log.DataBytes())
	}
	head := make([]byte, tailAt+8)
	if err := log.Read(ctx, source, 0, head); err != nil {
		return nil, fmt.Errorf("pebble: read the journal: %w", err)
	}
	ring, err := parseJournal(head, log.DataBytes())
	if err == nil && ring == 0 {
		ring = (log.DataBytes() - ringAt) &^ 7
		err = format(ctx, log, ring)
	}
	if err != nil {
		return nil, err
	}
	w := &writer{
		log: log, followers: followers, ring: ring, most: int(min(mostBytes, ring/8)),
		session: rand.Uint64(), tail: binary.LittleEndian.Uint64(head[tailAt:]),
	}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	if err := w.ask(ctx, 0); err != nil {
		return nil, err
	}
	if w.tail-w.floor > w.ring {
		return nil, fmt.Errorf("pebble: the copy of a replica ends at %d, and the journal at %d has only %d bytes; begin it with another replica's copy (Checkpoint, Seed)",
			w.floor, w.tail, w.ring)
	}
	return w, nil
}

// format makes an empty journal, on all replicas.
func format(ctx context.Context, log *txn.Log, ring uint64) error {
	head := make([]byte, tailAt+8)
	binary.LittleEndian.PutUint64(head[magicAt:], journalMagic)
	binary.LittleEndian.PutUint64(head[ringBytesAt:], ring)
	if err := log.AppendWait(ctx, txn.Entry{Data: head}); err != nil {
		return fmt.Errorf("pebble: make a journal: %w", err)
	}
	return log.Drain(ctx)
}

func (w *writer) write(log, off uint64, p []byte) error {
	n := &w.next
	if len(n.data) > 0 && (n.log != log || n.off+uint64(len(n.data)) != off) {
		if err := w.flush(); err != nil {
			return err
		}
	}
	if len(n.data) == 0 {
		*n = piece{session: w.session, log: log, off: off, data: n.data}
	}
	if n.data = append(n.data, p...); len(n.data) >= w.most {
		return w.flush()
	}
	return nil
}

func (w *writer) sync() error {
	if err := w.flush(); err != nil || w.last == nil {
		return err
	}
	if err := w.last.Wait(w.ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	return nil
}

// flush puts what was written on its way.
func (w *writer) flush() error {
	for rest := w.next; len(rest.data) > 0; {
		p := rest
		p.data = rest.data[:min(len(rest.data), w.most)]
		err := w.append(p)
		if errors.Is(err, txn.ErrTooLarge) && w.most > 64 {
			w.most /= 2 // The group's log is smaller than that.
			continue
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrLost, err)
		}
		rest.off, rest.data = rest.off+uint64(len(p.data)), rest.data[len(p.data):]
	}
	w.next.data = w.next.data[:0]
	return nil
}

// append adds a piece to the journal: its bytes and the tail behind them are one transaction.
func (w *writer) append(p piece) error {
	if err := w.makeRoom(p.size()); err != nil {
		return err
	}
	pending, err := w.log.Append(w.ctx, w.entries(p.encode(w.tail))...)
	if err != nil {
		return err
	}
	w.last = pending
	w.tail += p.size()
	return nil
}

func (w *writer) entries(b []byte) []txn.Entry {
	at := w.tail % w.ring
	n := min(uint64(len(b)), w.ring-at)
	entries := []txn.Entry{{Offset: ringAt + at, Data: b[:n]}}
	if n < uint64(len(b)) {
		entries = append(entries, txn.Entry{Offset: ringAt, Data: b[n:]})
	}
	tail := binary.LittleEndian.AppendUint64(nil, w.tail+uint64(len(b)))
	return append(entries, txn.Entry{Offset: tailAt, Data: tail})
}

// makeRoom sees to it that the journal has room for so many bytes. Replicas make bases
// by themselves; they are asked how far they are before the room is used up, and waited
// for only when it is.
func (w *writer) makeRoom(size uint64) error {
	w.mu.Lock()
	used, floor := w.tail-w.floor, w.floor
	begin := used > w.ring/2 && !w.asking
	if begin {
		w.asking = true
		w.asked.Add(1)
	}
	w.mu.Unlock()
	if begin {
		go func() {
			defer w.asked.Done()
			_ = w.ask(w.ctx, floor+w.ring/4) // If it fails, it is asked again when it must not.
			w.mu.Lock()
			defer w.mu.Unlock()
			w.asking = false
		}()
	}
	if used+size <= w.ring {
		return nil
	}
	if err := w.log.Drain(w.ctx); err != nil {
		return err
	}
	return w.ask(w.ctx, w.tail+size-w.ring)
}

// ask asks all replicas to have a base at a position or behind it, and raises the floor.
func (w *writer) ask(ctx context.Context, upTo uint64) error {
	bases, errs := make([]uint64, len(w.followers)), make([]error, len(w.followers))
	var all sync.WaitGroup
	for i, f := range w.followers {
		all.Go(func() {
			if bases[i], errs[i] = f.Persist(ctx, upTo); errs[i] != nil {
				errs[i] = fmt.Errorf("replica %d: %w", i, errs[i])
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.floor = max(w.floor, slices.Min(bases))
	return nil
}

func (w *writer) close() {
	w.cancel()
	w.asked.Wait()
}
