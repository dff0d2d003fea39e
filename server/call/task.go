package call

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/tenant/extension"
	"github.com/ostrodb/ostro/tenant/library"
	"github.com/ostrodb/ostro/tenant/sched"
)

// Task is a call that did not end at once. It belongs to its door, but while the scheduler runs it.
type Task struct {
	host    *Host
	req     Request
	owned   bool // req's bytes are the task's
	ended   bool // there is a result
	fetched bool // it waited for a fetch, and may be tried once more where it began
	tries   int
	lost    time.Time // when it first met changes of what it had read
	place   *place    // where it stands in line, or has stood last
	gone    atomic.Bool
	wake    func()

	data     far
	response []byte
	err      error
}

// tries is how often a call that meets changes is run in the scheduler.
const tries = 64

// Cancel ends a call that nobody waits for any more. Nothing of it is applied.
func (t *Task) Cancel() {
	t.gone.Store(true)
	t.host.leave(t.place)
}

// isGone tells that nobody waits for the call any more.
func (t *Task) isGone() bool {
	return t.gone.Load() || t.req.Closed != nil && t.req.Closed.Load()
}

// Start has the scheduler run a call for which Call said Later; t is what it returned. When it has ended wake is
// called, once, from another goroutine: then Call is to be called again, in a round of the worker.
func (h *Host) Start(r *Request, t *Task, wake func()) error {
	if !t.owned {
		t.req, t.owned = r.own(), true
	}
	t.ended, t.wake, t.err, t.response = false, wake, nil, nil
	h.running.Add(1)
	if !h.turns(t) {
		return nil
	}
	err := h.launch(t)
	if err != nil {
		h.leave(t.place)
	}
	return err
}

// launch gives a call to the scheduler.
func (h *Host) launch(t *Task) error {
	if err := t.req.Share.Go(t.run); err != nil {
		h.running.Done()
		return err
	}
	h.count.scheduled.Add(1)
	return nil
}

// run is the call in the scheduler.
func (t *Task) run(turn *sched.Turn) {
	defer t.host.running.Done()
	t.data = far{host: t.host, req: &t.req, turn: turn, names: t.data.names, changes: t.data.changes}
	t.response, t.err = t.attempt(turn)
	if fruitless(t.err) {
		turn.Waste()
	}
	t.data.turn = nil
	t.ended = true
	turn.Aloud(t.tell) // It takes locks of those who serve.
}

// tell says that the call has ended.
func (t *Task) tell() {
	if t.isGone() {
		t.host.leave(t.place) // Nobody may come for its result.
	}
	t.wake()
}

// fruitless tells of calls that came to nothing by their own or their client's fault, and not since their function said so.
// A client that leaves has its calls end as well as a deadline does, and so has who kills them: otherwise that would pay for
// them.
func fruitless(err error) bool {
	var e *extension.CallError
	if !errors.As(err, &e) {
		return false
	}
	switch e.Kind {
	case extension.Killed:
		return errors.Is(err, sched.ErrLate) || errors.Is(err, errGone) || errors.Is(err, library.ErrKilled)
	case extension.Failed, extension.Returned, extension.NotCommitted, extension.Broken:
		return false
	}
	return true
}

func (t *Task) attempt(turn *sched.Turn) ([]byte, error) {
	if err := turn.Err(); err != nil {
		return nil, err
	}
	if t.isGone() {
		return nil, errGone
	}
	f, pool, err := t.find(turn)
	if err != nil {
		return nil, err
	}
	run := f.Enter()
	defer turn.Aloud(run.Leave)
	began := time.Now()
	res, err := pool.Call(&extension.Invocation{
		Function: f.Name, Keys: t.req.Keys, Args: t.req.Args, ReadOnly: t.req.ReadOnly,
		Store: &t.data, Placed: &t.data, Turns: &turns{turn, t, run}, Log: f.Log,
	})
	f.Note(0, &res, err, time.Since(began))
	if t.data.err != nil {
		err = t.data.err
	}
	return res.Response, err
}

// findRounds is how often a function that was replaced while it was looked for is looked for again.
const findRounds = 8

// find gives the function and a pool that is ready, which may take a compilation.
func (t *Task) find(turn *sched.Turn) (*library.Function, *extension.Pool, error) {
	err := library.ErrGone
	for range findRounds {
		f := t.req.Shelf.Find(t.req.Name)
		if f == nil {
			return nil, nil, ErrNotFound
		}
		var pool *extension.Pool
		if pool, err = f.Pool(); err == nil {
			return f, pool, nil
		}
		if errors.Is(err, library.ErrCold) {
			turn.Wait(func() { err = prepared(f) })
		}
		if err != nil && !errors.Is(err, library.ErrGone) {
			return nil, nil, fmt.Errorf("function %s cannot run: %w", f.Name, err)
		}
	}
	return nil, nil, err
}

func prepared(f *library.Function) error {
	done := make(chan error, 1)
	f.Prepare(func(err error) { done <- err })
	return <-done
}

// turns is the scheduler's turn, which ends when nobody waits for the call or somebody wants it to end.
type turns struct {
	*sched.Turn
	task *Task
	run  *library.Run
}

var (
	errGone    = errors.New("nobody waits for it any more")
	errClosing = errors.New("the server is stopping")
)

// Yield lets others run.
func (t *turns) Yield(why extension.Reason) error {
	switch {
	case t.task.isGone():
		return errGone
	case t.task.host.closing.Load():
		return errClosing
	}
	if err := t.run.Killed(); err != nil {
		return err
	}
	return t.Turn.Yield(why)
}
