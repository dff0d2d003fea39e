package nemesis

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/test/harness"
	"github.com/ostrodb/ostro/test/linearize"
)

// Load is clients at work.
type Load struct {
	history *linearize.History
	pool    *pool
	clients []*client
	bulks   []*bulk
	hoards  []*hoard
	addrs   []string
	plain   bool
	seed    uint64

	contenders []*contender

	stop chan struct{}
	all  sync.WaitGroup
}

// LoadOptions say how much there is to do.
type LoadOptions struct {
	Seed    uint64
	Addrs   []string // of some nodes at least
	Plain   bool     // clients know nothing of clusters: all nodes forward
	Clients int      // who contend for objects
	Bulks   int      // who write much
	Hoards  int      // who keep large values, many keys of one slot, and keys that expire
	Width   int      // how many objects of each kind there are at a time
}

// StartLoad lets clients work until Stop.
func StartLoad(o LoadOptions) *Load {
	l := &Load{history: linearize.NewHistory(), addrs: o.Addrs, plain: o.Plain, seed: o.Seed, stop: make(chan struct{})}
	run := fmt.Sprintf("%x", o.Seed)
	l.pool = newPool(run, max(1, o.Width))
	for n := range o.Clients {
		c := l.newClient(n)
		l.clients = append(l.clients, c)
		l.all.Go(func() { c.run(l.stop) })
	}
	for n := range o.Bulks {
		b := &bulk{
			Router: l.router(1000 + n), rng: l.rng(1000 + n), name: fmt.Sprintf("w%s.%d", run, n),
			ledger: newLedger(),
		}
		l.bulks = append(l.bulks, b)
		l.all.Go(func() { b.run(l.stop) })
	}
	for n := range o.Hoards {
		h := newHoard(l.router(2000+n), l.rng(2000+n), fmt.Sprintf("h%s.%d", run, n))
		l.hoards = append(l.hoards, h)
		l.all.Go(func() { h.run(l.stop) })
	}
	return l
}

func (l *Load) rng(n int) *rand.Rand { return rand.New(rand.NewPCG(l.seed, uint64(n))) }

func (l *Load) router(n int) *Router {
	r := NewRouter(l.seed^uint64(n)<<32, 20*time.Second, l.addrs...)
	r.plain = l.plain
	return r
}

func (l *Load) newClient(n int) *client {
	return &client{Router: l.router(n), rng: l.rng(n), recorder: l.history.Client(), pool: l.pool, id: n}
}

// Answers is how many operations were answered so far, as an upper bound. A nemesis
// waits for it to grow, to know that there is something to destroy.
func (l *Load) Answers() int {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	n := 0
	for _, o := range l.pool.all {
		n += o.ops - o.lost
	}
	return n
}

// Odd is Hopeless if a client got an answer that no client should see: it does not go on.
func (l *Load) Odd() error {
	for _, heard := range l.heard() {
		if odd := heard.Load(); odd != nil {
			return harness.GiveUp(errors.New(*odd))
		}
	}
	return nil
}

// heard is where clients leave such an answer.
func (l *Load) heard() (all []*atomic.Pointer[string]) {
	for _, r := range l.routers() {
		all = append(all, &r.heard)
	}
	for _, c := range l.contenders {
		all = append(all, &c.heard)
	}
	return all
}

// Writes is how many bulk writes were acknowledged so far.
func (l *Load) Writes() (n int) {
	for _, b := range l.bulks {
		n += int(b.writes.Load())
	}
	return n
}

// Hoarded tells whether all who keep something have all of it.
func (l *Load) Hoarded() bool {
	return !slices.ContainsFunc(l.hoards, func(h *hoard) bool { return !h.complete.Load() })
}

// Stop ends the work and waits until all clients have gone.
func (l *Load) Stop() {
	close(l.stop)
	l.all.Wait()
}

// Check reads everything once more and says what does not make sense. The servers must be able
// to answer again.
func (l *Load) Check() error {
	errs := []error{l.audit()}
	for _, b := range l.bulks {
		if err := b.verify(); err != nil {
			errs = append(errs, fmt.Errorf("ledger of a bulk writer: %w", err))
		}
	}
	for _, h := range l.hoards {
		if err := h.verify(); err != nil {
			errs = append(errs, fmt.Errorf("ledger of a hoard: %w", err))
		}
	}
	for _, heard := range l.heard() {
		if odd := heard.Load(); odd != nil {
			errs = append(errs, errors.New(*odd))
		}
	}
	errs = append(errs, linearize.Check(l.history.Ops()))
	return errors.Join(errs...)
}

// audit is a last read of every object. It tells whether what was acknowledged is
// still there.
func (l *Load) audit() error {
	c := l.newClient(len(l.clients))
	defer c.Close()
	for _, o := range l.pool.all {
		read := c.get
		if kind(o.name[0]) == bank {
			read = c.balances
		}
		fate := Lost
		for end := time.Now().Add(time.Minute); fate != Answered && time.Now().Before(end) && c.Odd == ""; {
			fate = read(o)
		}
		if fate != Answered {
			return fmt.Errorf("%s cannot be read: %s %v", o.name, c.Odd, c.Refusals)
		}
	}
	return nil
}

func (l *Load) routers() (all []*Router) {
	for _, c := range l.clients {
		all = append(all, c.Router)
	}
	for _, b := range l.bulks {
		all = append(all, b.Router)
	}
	for _, h := range l.hoards {
		all = append(all, h.Router)
	}
	return all
}

// String tells how much was done.
func (l *Load) String() string {
	ops := l.history.Ops()
	lost := 0
	for _, o := range ops {
		if o.Return == linearize.Never {
			lost++
		}
	}
	refusals := map[string]int{}
	for _, r := range l.routers() {
		for why, n := range r.Refusals {
			refusals[why] += n
		}
	}
	text := fmt.Sprintf("%d operations on %d objects, %d without an answer; %d bulk writes", len(ops), len(l.pool.all), lost, l.Writes())
	if len(l.contenders) > 0 {
		native := int64(0)
		for _, c := range l.contenders {
			native += c.done.Load()
		}
		text += fmt.Sprintf("; %d operations by native clients", native)
	}
	for _, h := range l.hoards {
		text += "; " + h.String()
	}
	for why := range maps.Keys(refusals) {
		text += fmt.Sprintf("; %s %d times", strings.ToLower(why), refusals[why])
	}
	return text
}
