package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/bench/workload"
	"github.com/ostrodb/ostro/engine/store"
)

const (
	// roundOps is how many operations share one epoch protection, as in a
	// server's loop; FASTER's benchmark refreshes as often.
	roundOps = 64
	// deckOps is how many operations are shuffled ahead.
	deckOps = 1 << 12
	// mostRetries is how often an operation may find its record on disk
	// again before the run fails: it must come to memory in the end.
	mostRetries = 1000
)

// worker is one goroutine with its session. Everything it needs is here before
// it starts; run allocates nothing.
type worker struct {
	ctx     context.Context
	ss      *store.Session
	shape   shape
	batch   int
	index   uint64
	workers uint64
	pin     bool
	base    uint64 // records there before this run
	chooser *workload.Chooser

	readsOnly bool
	addsOnly  bool

	deck     []workload.Op
	loadDeck []workload.Op
	at       int
	ids      [roundOps]uint32
	keyBytes [roundOps][]byte
	keys     [roundOps]store.Key
	views    [roundOps]store.View
	statuses [roundOps]store.Status
	sums     [roundOps]int64
	waiting  [roundOps]int // indices of operations that wait for the disk
	value    []byte
	seen     []byte // what was read last: a read ends in the caller's memory
	change   func(*store.View, bool) (store.Write, bool)

	sampled   int // index of the operation that is timed in this round, -1 none
	sampledAt time.Time

	ops, cold, missing, inserted uint64
	latency                      *workload.Latency
	err                          error
}

func newWorker(x *fixture, mix workload.Mix, batch int) (*worker, error) {
	ss, err := x.st.NewSession()
	if err != nil {
		return nil, fmt.Errorf("open a session: %w", err)
	}
	w := &worker{
		ctx: context.Background(), ss: ss, shape: x.shape, batch: batch, workers: 1, base: x.records,
		value: make([]byte, x.shape.value), seen: make([]byte, x.shape.value),
		latency: workload.NewLatency(),
	}
	w.deck, w.readsOnly, w.addsOnly = mix.Deck(deckOps, 1), mix.Only(workload.Read), mix.Only(workload.Add)
	w.loadDeck = workload.Writes.Deck(roundOps, 1)
	n := x.shape.keys.Len()
	room := make([]byte, roundOps*n)
	for i := range w.keyBytes {
		w.keyBytes[i] = room[i*n : (i+1)*n : (i+1)*n]
		x.shape.keys.Put(w.keyBytes[i], 0)
	}
	w.change = w.changed
	return w, nil
}

// changed is the function of a read-modify-write: it takes the old value and
// counts up its first eight bytes.
func (w *worker) changed(old *store.View, exists bool) (store.Write, bool) {
	if !exists {
		return store.Write{}, false
	}
	n := copy(w.value, old.Value)
	binary.LittleEndian.PutUint64(w.value, binary.LittleEndian.Uint64(w.value)+1)
	return store.Write{Value: w.value[:n]}, true
}

func (w *worker) run(stop *atomic.Bool) {
	if w.pin {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var cpus, before unix.CPUSet
		_ = unix.SchedGetaffinity(0, &before)
		cpus.Set(int(w.index) % runtime.NumCPU())
		_ = unix.SchedSetaffinity(0, &cpus)     // where it is forbidden, the scheduler decides
		defer unix.SchedSetaffinity(0, &before) // the thread goes back to the runtime
	}
	for turn := 0; !stop.Load(); turn++ {
		w.chooser.Fill(w.ids[:], w.base+w.inserted)
		if w.at == len(w.deck) {
			w.at = 0
		}
		deck := w.deck[w.at : w.at+roundOps]
		w.at += roundOps
		if w.err = w.round(w.ids[:], deck, turn%roundOps); w.err != nil {
			return
		}
		w.ops += roundOps
	}
}

// round runs one operation for each id under one epoch protection, then, until
// none waits any more, brings what lies on disk and runs those again. It times
// the operation (or the batch) with index sampled.
func (w *worker) round(ids []uint32, deck []workload.Op, sampled int) error {
	w.sampled = sampled
	w.encode(ids, deck)
	w.ss.Begin()
	var waiting int
	switch {
	case w.batch == 1:
		waiting = w.each(ids, deck)
	case w.readsOnly || w.addsOnly:
		waiting = w.pureBatches(ids)
	default:
		waiting = w.batches(ids, deck)
	}
	w.ss.Seal()
	w.ss.End()
	if waiting < 0 {
		return w.failure()
	}
	w.cold += uint64(waiting)
	for try := 0; waiting > 0; try++ {
		if try == mostRetries {
			return fmt.Errorf("%d records stayed on disk after %d fetches", waiting, try)
		}
		if err := w.ss.Fetch(w.ctx); err != nil {
			return fmt.Errorf("fetch from disk: %w", err)
		}
		w.ss.Begin()
		waiting = w.again(deck, waiting)
		w.ss.Seal()
		w.ss.End()
		if waiting < 0 {
			return w.failure()
		}
	}
	return nil
}

func (w *worker) failure() error {
	if err := w.ss.Err(); err != nil {
		return err
	}
	return fmt.Errorf("the store answered with an unexpected status")
}

// each runs the operations one by one and returns how many wait for the disk,
// negative if one failed.
func (w *worker) each(ids []uint32, deck []workload.Op) int {
	waiting := 0
	for i := range ids {
		if i == w.sampled {
			w.sampledAt = time.Now()
		}
		switch w.one(deck[i], w.keyBytes[i]) {
		case store.OK:
			if i == w.sampled {
				w.latency.Record(int64(time.Since(w.sampledAt)), 1)
			}
		case store.Cold:
			w.waiting[waiting] = i
			waiting++
		default:
			return -1
		}
	}
	return waiting
}

// one runs an operation on a key that is used once.
func (w *worker) one(op workload.Op, key []byte) store.Status {
	switch op {
	case workload.Read:
		_, st := w.ss.Copy(0, key, w.seen)
		if st == store.NotFound {
			w.missing++
			return store.OK
		}
		return st
	case workload.Add:
		_, st := w.ss.Count(0, key, 1)
		return st
	default:
		w.ss.Name(&w.keys[0], 0, key)
		return w.do(op, &w.keys[0])
	}
}

// again runs those that waited once more.
func (w *worker) again(deck []workload.Op, n int) int {
	waiting := 0
	for _, i := range w.waiting[:n] {
		switch w.one(deck[i], w.keyBytes[i]) {
		case store.OK:
			if w.sampled >= 0 && i/w.batch == w.sampled/w.batch {
				w.latency.Record(int64(time.Since(w.sampledAt)), 1)
			}
		case store.Cold:
			w.waiting[waiting] = i
			waiting++
		default:
			return -1
		}
	}
	return waiting
}

// encode writes the keys of the round, all of them before the first operation:
// a key that was written just before it is read would stall its own lookup.
func (w *worker) encode(ids []uint32, deck []workload.Op) {
	for i, id32 := range ids {
		id := uint64(id32)
		if deck[i] == workload.Insert {
			id = w.base + w.inserted
			w.inserted++
		}
		if id >= w.base && id-w.base < w.inserted {
			// Each worker inserts, and finds again, every n-th id.
			id = w.base + (id-w.base)*w.workers + w.index
		}
		w.shape.keys.Patch(w.keyBytes[i], id)
	}
}

func (w *worker) do(op workload.Op, k *store.Key) store.Status {
	switch op {
	case workload.Read:
		st := w.ss.Read(k, &w.views[0])
		if st == store.NotFound {
			w.missing++
			return store.OK
		}
		copy(w.seen, w.views[0].Value)
		return st
	case workload.Modify:
		return w.ss.RMW(k, w.change)
	case workload.Add:
		_, st := w.ss.Add(k, 1)
		return st
	default:
		return w.ss.Put(k, store.Write{Value: w.value}, nil)
	}
}

// batches runs operations of any kind: it names all keys of a batch, then
// runs the operations in their order. A sampled batch is timed as a whole.
func (w *worker) batches(ids []uint32, deck []workload.Op) int {
	waiting := 0
	for from := 0; from < len(ids); from += w.batch {
		to := w.name(from, len(ids))
		w.ss.Prefetch(w.keys[from:to])
		before := waiting
		for i := from; i < to; i++ {
			switch w.do(deck[i], &w.keys[i]) {
			case store.OK:
			case store.Cold:
				w.waiting[waiting] = i
				waiting++
			default:
				return -1
			}
		}
		w.timed(from, to, to-from-(waiting-before))
	}
	return waiting
}

// pureBatches runs a mix of reads alone, or of additions alone, as many at a
// time as the store takes.
func (w *worker) pureBatches(ids []uint32) int {
	waiting := 0
	for from := 0; from < len(ids); from += w.batch {
		to := w.name(from, len(ids))
		if w.addsOnly {
			w.ss.AddBatch(w.keys[from:to], 1, w.sums[from:to], w.statuses[from:to])
		} else {
			w.ss.GetBatch(w.keys[from:to], w.views[from:to], w.statuses[from:to])
		}
		hot := 0
		for i := from; i < to; i++ {
			switch w.statuses[i] {
			case store.OK:
				copy(w.seen, w.views[i].Value)
				hot++
			case store.NotFound:
				w.missing++
			case store.Cold:
				w.waiting[waiting] = i
				waiting++
			default:
				return -1
			}
		}
		w.timed(from, to, hot)
	}
	return waiting
}

// name names the keys of the batch that begins at from, and starts the clock if
// it is the sampled one. It returns where the batch ends.
func (w *worker) name(from, end int) (to int) {
	to = min(from+w.batch, end)
	if from <= w.sampled && w.sampled < to {
		w.sampledAt = time.Now()
	}
	for i := from; i < to; i++ {
		w.ss.Name(&w.keys[i], 0, w.keyBytes[i])
	}
	return to
}

// timed stops the clock if the batch is the sampled one. It counts with the time
// until all of it is there, for each of its hot keys.
func (w *worker) timed(from, to, hot int) {
	if from <= w.sampled && w.sampled < to && hot > 0 {
		w.latency.Record(int64(time.Since(w.sampledAt)), int64(hot))
	}
}
