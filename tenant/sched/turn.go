package sched

import (
	"runtime"
	"sync/atomic"

	"github.com/ostrodb/ostro/internal/background"
)

// Turn is a call on its way. Its methods but Kill belong to the function that Go was given.
//
// A turn's fields belong to whoever holds it: its function while it runs, the lane that it waits in (so the lock of
// the lane's worker), or whoever took it from there.
type Turn struct {
	s     *Scheduler
	share *Share
	f     func(*Turn)

	crew     *crew // whose workers it waits for
	home     int   // which of them
	worker   *worker
	runner   *runner // nil: it has not begun
	next     *Turn   // in its lane
	queuedAt int64
	since    int64 // when it was given its worker, or was last charged
	used     int64 // nanoseconds that it ran
	hushed   bool  // it may have a thread of low priority
	wasted   bool  // it has come to nothing
	uses     uint32
	deadline int64

	flags atomic.Uint32
	cause atomic.Pointer[error]
}

const (
	killed    = 1 << iota // it ends at its next Yield
	displaced             // its worker was taken away
	overdue               // its time is over: it is to look at the clock at its next Yield
)

// storeUses is after how many uses of the store a turn looks at the clock although nobody waits.
const storeUses = 64

// Err says why the turn is to end; nil: it may go on. A function that finds an error when it begins only has to tell its caller.
func (t *Turn) Err() error {
	if t.flags.Load()&killed == 0 {
		if t.s.closed.Load() {
			t.Kill(ErrClosed)
		} else {
			return nil
		}
	}
	return *t.cause.Load()
}

// Kill ends the turn at its next Yield. It may be called by anyone; the first cause stays.
func (t *Turn) Kill(cause error) {
	if t.cause.CompareAndSwap(nil, &cause) {
		t.s.counts.killed.Add(1)
		t.flags.Or(killed)
	}
}

// Share is whose turn it is.
func (t *Turn) Share() *Share { return t.share }

// Yield lets others run, and returns when it is this one's turn again. After an error it must come to its end.
func (t *Turn) Yield(why Reason) error {
	if why != Asked && t.brief(why) {
		return nil
	}
	now := t.s.now()
	t.charge(now)
	if now > t.deadline {
		t.Kill(t.late(now))
	}
	if err := t.Err(); err != nil {
		return err
	}
	if t.stays(now) {
		runtime.Gosched() // Front doors that wait for a processor come first.
		t.since = t.s.now()
		return nil
	}
	t.pass(now)
	return t.Err()
}

// brief tells that there is no reason to do anything: the turn runs for less than a quantum, or nobody else wants to.
func (t *Turn) brief(why Reason) bool {
	if t.flags.Load() != 0 {
		return false
	}
	if why == StoreUse {
		if t.uses++; t.uses%storeUses != 0 && !t.crew.wanted(t.worker) {
			return true
		}
	}
	return t.s.now()-t.since < t.crew.quantum
}

// stays tells that the turn may go on where it is.
func (t *Turn) stays(now int64) bool {
	if t.flags.Load() != 0 || t.crew.wanted(t.worker) || t.share.pause(now) > 0 {
		return false
	}
	if t.crew == t.s.short && t.used > t.share.patience.Load() || t.crew == t.s.long && t.share.inDebt() {
		return false
	}
	t.worker.beat.Store(now)
	return true
}

// charge counts what ran since the last time.
func (t *Turn) charge(now int64) {
	ran := max(now-t.since, 0)
	t.since = now
	long := int64(t.s.opts.LongAfter)
	if t.used <= long && t.used+ran > long {
		t.share.distrust()
	}
	t.used += ran
	t.share.charge(now, ran)
	if by := ran - t.crew.quantum; by > 0 && t.crew == t.s.long && t.share.inDebt() {
		t.share.overrun(now, by)
	}
}

// pass hands the worker on and waits for the next turn. Its time was charged.
func (t *Turn) pass(now int64) {
	w := t.leave()
	if w == nil || t.used > t.share.patience.Load() {
		t.lengthen()
	}
	r := t.runner
	t.queue(now)
	// From here on the turn may be anybody's, until its runner is woken, which may be by employ itself.
	if w != nil {
		w.employ()
	}
	<-r.wake
	t.settle()
}

// leave gives up the worker, and returns it; nil: it was taken away.
func (t *Turn) leave() *worker {
	w := t.worker
	t.worker = nil
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.turn != t {
		t.flags.And(^uint32(displaced))
		return nil
	}
	w.turn = nil
	return w
}

// lengthen makes the turn a long one, unless the tenant has enough of these: then it is ended.
func (t *Turn) lengthen() {
	if t.crew == t.s.long {
		return
	}
	if t.share.long.Add(1) > int64(t.s.opts.Long) {
		t.share.long.Add(-1)
		t.Kill(ErrLong)
		return
	}
	t.share.unbegin()
	t.s.counts.long.Add(1)
	t.crew, t.home = t.s.long, t.share.home%len(t.s.long.workers)
}

// queue puts the turn into its lane, and wakes a worker that has nothing to do.
func (t *Turn) queue(now int64) {
	t.queuedAt = now
	w := t.crew.workers[t.home]
	w.add(t)
	t.s.counts.queued.Add(1)
	w.crew.rouse(w)
}

// settle is done by the turn's goroutine when it was given a worker again: a long one goes to a thread
// that the kernel lets wait for those who serve.
func (t *Turn) settle() {
	if t.hushed && !t.runner.quiet && !t.s.closed.Load() {
		t.runner.quiet = true
		background.Quiet()
	}
	t.since = t.s.now()
}

// placed tells that nothing but a worker is missing: it has begun, and has a thread if it is a long one.
func (t *Turn) placed() bool {
	if t.crew == t.s.long {
		return t.hushed
	}
	return t.runner != nil
}

// Aloud runs f at usual priority. It is for what takes locks that those who serve take, too.
func (t *Turn) Aloud(f func()) {
	if t.runner.quiet {
		background.Aloud(f)
		return
	}
	f()
}

// Wait runs f, which may block, while the worker is another's. On a thread of low priority f runs
// on one of usual priority, so it may take locks that those who serve take, too.
func (t *Turn) Wait(f func()) {
	now := t.s.now()
	t.charge(now)
	if w := t.leave(); w != nil {
		w.employ()
	}
	t.s.counts.waiting.Add(1)
	t.Aloud(f)
	t.s.counts.waiting.Add(-1)
	r := t.runner
	t.queue(t.s.now())
	<-r.wake
	t.settle()
}
