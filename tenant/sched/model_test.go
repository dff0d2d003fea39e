package sched

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// plan is what a number of tenants do. It is drawn first and then carried out in a bubble, so that the same plan gives the same run.
type plan struct {
	opts  Options
	cores []float64
	calls []callPlan
}

type callPlan struct {
	tenant int
	pause  time.Duration // before it is made
	steps  []step
	limit  float64 // that the tenant gets after it; 0: as it was
}

type step struct {
	kind byte // 'c' compute and end a slice, 's' use the store, 'w' wait for data, 'k' be killed, 'h' hang
	time time.Duration
}

func drawPlan(t *rapid.T) plan {
	p := plan{opts: Options{
		Workers: rapid.IntRange(1, 3).Draw(t, "workers"), LongWorkers: rapid.IntRange(1, 2).Draw(t, "long workers"),
		NoStealing: rapid.Bool().Draw(t, "no stealing"), NoLocality: rapid.Bool().Draw(t, "no locality"),
		Begun: rapid.IntRange(1, 4).Draw(t, "begun"), Long: rapid.IntRange(1, 4).Draw(t, "long"), Queue: rapid.IntRange(1, 12).Draw(t, "queue"),
		QuietThreads: rapid.IntRange(1, 2).Draw(t, "quiet threads"), QuietTurns: rapid.IntRange(1, 2).Draw(t, "quiet turns"), Deadline: rapid.SampledFrom([]time.Duration{50 * time.Millisecond, never}).Draw(t, "deadline"),
	}}
	p.cores = rapid.SliceOfN(rapid.SampledFrom([]float64{0, 0, 0.1, 1}), 1, 3).Draw(t, "cores")
	millis := func(most int) *rapid.Generator[time.Duration] {
		return rapid.Map(rapid.IntRange(0, most*4), func(n int) time.Duration { return time.Duration(n) * time.Millisecond / 4 })
	}
	steps := rapid.Custom(func(t *rapid.T) step {
		return step{rapid.SampledFrom([]byte("ccccsssswwkh")).Draw(t, "kind"), millis(4).Draw(t, "time")}
	})
	p.calls = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) callPlan {
		return callPlan{
			rapid.IntRange(0, len(p.cores)-1).Draw(t, "tenant"), millis(2).Draw(t, "pause"), rapid.SliceOfN(steps, 0, 12).Draw(t, "steps"),
			rapid.SampledFrom([]float64{0, 0, 0, 0.5, 100}).Draw(t, "limit"),
		}
	}), 1, 40).Draw(t, "calls")
	return p
}

// ledger is what must hold.
type ledger struct {
	mu      sync.Mutex
	running int
	taken   map[int]bool // calls that Go took
	ended   map[int]int
	faults  []error
}

func (l *ledger) fault(format string, args ...any) {
	l.faults = append(l.faults, fmt.Errorf(format, args...))
}

// runs notes that a call runs, or does not any more.
func (l *ledger) runs(s *Scheduler, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running += n
	// Who lost its worker and has not noticed yet runs beside the others.
	if most := len(s.short.workers) + len(s.long.workers) + int(s.counts.replaced.Load()); l.running > most {
		l.fault("%d calls run at a time, and at most %d may", l.running, most)
	}
}

func (l *ledger) end(call int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended[call]++
}

var errWanted = errors.New("as the plan says")

func (c *callPlan) run(l *ledger, call int, u *Turn) {
	l.runs(u.s, 1)
	defer func() {
		l.runs(u.s, -1)
		l.end(call)
	}()
	if u.Err() != nil {
		return
	}
	for _, st := range c.steps {
		var err error
		switch st.kind {
		case 'c', 's', 'h':
			time.Sleep(st.time * map[byte]time.Duration{'c': 1, 's': 1, 'h': 10}[st.kind])
			why := map[byte]Reason{'c': SliceEnd, 's': StoreUse, 'h': Asked}[st.kind]
			l.runs(u.s, -1)
			err = u.Yield(why)
			l.runs(u.s, 1)
		case 'w':
			l.runs(u.s, -1)
			u.Wait(func() { time.Sleep(st.time) })
			l.runs(u.s, 1)
		case 'k':
			u.Kill(errWanted)
		}
		if err != nil {
			return
		}
	}
}

func (p *plan) carryOut() error {
	s := New(p.opts)
	l := &ledger{taken: map[int]bool{}, ended: map[int]int{}}
	var shares []*Share
	for i, cores := range p.cores {
		shares = append(shares, s.NewShare(fmt.Sprint(i), Limits{Cores: cores}))
	}
	for i, c := range p.calls {
		time.Sleep(c.pause)
		share := shares[c.tenant]
		switch err := share.Go(func(u *Turn) { c.run(l, i, u) }); {
		case err == nil:
			l.taken[i] = true
		case !errors.Is(err, ErrBusy):
			l.mu.Lock()
			l.fault("call %d: %w", i, err)
			l.mu.Unlock()
		}
		if c.limit != 0 {
			share.SetLimit(c.limit)
		}
	}
	time.Sleep(time.Hour) // All have had their turns by then, however little they may use.
	synctest.Wait()
	if m := s.Metrics(); m.Turns != 0 || m.Running != 0 || m.Queued != 0 || m.Waiting != 0 {
		l.fault("after an hour: %+v", m)
	}
	for _, share := range shares {
		if share.begun.Load() != 0 || share.long.Load() != 0 || share.quiet.Load() != 0 {
			l.fault("tenant %s: %d begun, %d long, %d with threads", share.name, share.begun.Load(), share.long.Load(), share.quiet.Load())
		}
	}
	s.Close()
	for i := range p.calls {
		if l.taken[i] != (l.ended[i] == 1) || l.ended[i] > 1 {
			l.fault("call %d was taken: %t, and ended %d times", i, l.taken[i], l.ended[i])
		}
	}
	return errors.Join(l.faults...)
}

func TestAnyPlanIsCarriedOut(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := drawPlan(rt)
		var err error
		synctest.Test(t, func(*testing.T) { err = p.carryOut() })
		if err != nil {
			rt.Fatal(err)
		}
	})
}
