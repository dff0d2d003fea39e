package session

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/cluster/balance"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server/call"
	"github.com/ostrodb/ostro/wire"
)

// window is how many operations are looked at together, so that their cache
// misses overlap.
const window = 32

// worker is a store session and those who wait on it. Connections' readers execute
// their rounds on it; its own goroutine releases what was held and goes on with
// what waited.
//
// Everything belongs to whoever holds mu, but for the inbox and what is atomic.
type worker struct {
	srv    *Server
	number int
	wake   chan struct{}
	box    inbox

	mu    sync.Mutex
	sess  *store.Session
	ended bool

	// The round.
	routing *Routing
	all     bool // every key of a batch that was accepted may be served
	gauge   *balance.Gauge
	noting  *balance.Gauge // gauge in rounds that are looked at, else nil
	on      target         // whose operation it is
	outs    []outgoing     // of a round that goes on with what waited

	ops   [window]wire.Op
	keys  [window]store.Key
	views [window]store.View
	stats [window]store.Status
	many  many
	rmw   rmw
	tally tally

	caller  *call.Caller
	calling wire.Invoke
	request call.Request

	held     []held         // oldest first
	arriving []*park        // wait for records to arrive
	fetching int            // parks whose I/O is under way
	resumed  []*store.Fetch // whose records this round uses
	starting []*park        // parks whose I/O begins after the round
}

// target is who gets the result of the operation that is executed.
type target struct {
	c     *conn
	out   *buffer
	batch wire.Batch
	park  *park // the operation waited before
}

// outgoing is what a round has for one connection.
type outgoing struct {
	c   *conn
	out *buffer
}

// tally counts a round; it is published at its end.
type tally struct{ batches, stale, operations, waited, moved, repeated int64 }

// inbox is what other goroutines tell a worker.
type inbox struct {
	mu      sync.Mutex
	arrived []*park
	ended   []*park     // whose functions have
	moved   atomic.Bool // durability moved on
	changed atomic.Bool // ownership changed
}

func (s *Server) newWorker() (*worker, error) {
	sess, err := s.st.NewSession()
	if err != nil {
		return nil, err
	}
	w := &worker{srv: s, sess: sess, wake: make(chan struct{}, 1), gauge: s.opts.Heat.Gauge()}
	w.caller, w.number = s.calls.NewCaller(sess), len(s.workers)
	w.rmw.step, w.rmw.effect = w.rmw.next, w.rmw.outcome
	sess.Notify(func() {
		w.box.moved.Store(true)
		w.nudge()
	})
	s.running.Go(w.run)
	return w, nil
}

// nudge lets the worker's goroutine look at its inbox.
func (w *worker) nudge() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// look lets it look at operations that wait for records to arrive.
func (w *worker) look() {
	w.box.changed.Store(true)
	w.nudge()
}

// post tells that a park's I/O has ended.
func (w *worker) post(p *park) {
	w.box.mu.Lock()
	w.box.arrived = append(w.box.arrived, p)
	w.box.mu.Unlock()
	w.nudge()
}

// lookMillis is how often a worker looks at what waits, if nobody tells it to.
const lookMillis = 100

// run is the worker's goroutine.
func (w *worker) run() {
	tick := time.NewTimer(time.Hour)
	defer tick.Stop()
	for {
		if w.attend() {
			tick.Reset(lookMillis * time.Millisecond)
		} else {
			tick.Stop()
		}
		select {
		case <-w.wake:
		case <-tick.C:
		case <-w.srv.stop:
			return
		}
	}
}

// attend does what there is to do; true if something waits still.
func (w *worker) attend() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return false
	}
	w.goOn()
	w.box.moved.Store(false)
	w.releaseHeld()
	return len(w.held) > 0 || len(w.arriving) > 0
}

// end closes the session once no I/O for it is under way.
func (w *worker) end() {
	w.sess.GiveUp() // What waits for room, or for what is to arrive, might do so for ever.
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	w.ended = true
	for w.fetching > 0 {
		w.mu.Unlock()
		<-w.wake
		w.mu.Lock()
		for _, p := range w.takeArrived() {
			w.fetching--
			p.fetch.Release()
		}
	}
	w.srv.opts.Heat.Drop(w.gauge)
	w.sess.Close()
}

func (w *worker) takeArrived() []*park {
	w.box.mu.Lock()
	defer w.box.mu.Unlock()
	arrived := w.box.arrived
	w.box.arrived = nil
	return arrived
}

// worker finds one that is free, the connection's own if it is, and locks it.
func (c *conn) worker() *worker {
	if c.w.mu.TryLock() {
		return c.w
	}
	for _, w := range c.srv.workers {
		if w.mu.TryLock() {
			return w
		}
	}
	c.w.mu.Lock()
	return c.w
}
