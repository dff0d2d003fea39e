package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/ostrodb/ostro/bench/workload"
)

// system measures one system through all its cases.
func (f rocksteadyFlags) system(ctx context.Context, p *progress, start func(context.Context, rocksteadyFlags) (*steadySystem, error), cases []steadyCase, out *steadyOutcome) error {
	p.begin("start a cluster")
	s, err := start(ctx, f)
	if err != nil {
		return err
	}
	defer s.stop()
	if s.name == "redis" {
		f.records = min(f.records, f.ofRedis)
		cases = nil
		for _, load := range f.loads {
			cases = append(cases, steadyCase{"reshard", usualSkew, load})
		}
	}
	p.begin("load %s records, %s", f.records, s.name)
	owner, err := ownersAt(s.addrs[0], s.addrs)
	if err != nil {
		return err
	}
	mine := keysOfSlots(func(slot uint16) bool { return owner[slot] == 0 }, uint64(f.records))
	if err := loadInto(ctx, p, s.addrs[0], mine, f.value); err != nil {
		return err
	}
	t := &steadyTest{f: f, s: s, mine: mine, draws: map[float64]func() uint32{}}
	if f.perSec == 0 {
		p.begin("find the most that clients get, %s", s.name)
		if t.most, err = t.findMost(ctx); err != nil {
			return err
		}
	}
	count := map[steadyCase]int{}
	given := map[steadyCase]bool{} // up
	for i, c := range cases {
		if given[c] || s.torn {
			continue
		}
		count[c]++
		p.begin("%s, migration %d of %d: %s, skew %g, at %s/s", s.name, i+1, len(cases), c.mode, c.skew, rate(t.offered(c)))
		tries, err := t.tries(ctx, c)
		if err != nil {
			return fmt.Errorf("%s, %s, skew %g: %w", s.name, c.mode, c.skew, err)
		}
		for i := range tries {
			tries[i].Round = count[c]
		}
		out.Rounds = append(out.Rounds, tries...)
		given[c] = tries[len(tries)-1].Failed != ""
	}
	if s.torn {
		return nil // A slot of Redis' that is in two places: what cannot be read back says nothing.
	}
	p.begin("read back %s records, %s", f.records, s.name)
	return s.verify(ctx, mine, f.value)
}

// steadyTest is one system under measurement.
type steadyTest struct {
	f     rocksteadyFlags
	s     *steadySystem
	mine  estate
	most  float64                   // operations a second
	pace  float64                   // of a core when that was found; 0 if nobody looked
	draws map[float64]func() uint32 // by skew: to make them takes as long as a migration
}

func (t *steadyTest) offered(c steadyCase) float64 {
	if t.f.perSec > 0 {
		return t.f.perSec
	}
	return t.most * float64(c.load) / 100
}

func (t *steadyTest) draw(skew float64) func() uint32 {
	if t.draws[skew] == nil {
		t.draws[skew] = skewed(len(t.mine.ids), skew, 1)
	}
	return t.draws[skew]
}

// client connects to all nodes so many times, and knows who owns what by now.
func (t *steadyTest) client(skew float64, connections, depth int) (*roamer, error) {
	owner, err := ownersAt(t.s.addrs[0], t.s.addrs)
	if err != nil {
		return nil, err
	}
	return newRoamer(t.s.addrs, owner, connections, depth, t.mine.ids, t.draw(skew), t.f.value)
}

// findMost is how many operations a second all clients of the first node get without falling behind: as many as they get when
// each sends the next after the last, or less, until they keep up with a load of so many. A virtual machine has fast moments and slow
// ones: of the former the median of several tries counts, and to keep up with it once is enough.
func (t *steadyTest) findMost(ctx context.Context) (float64, error) {
	const long, share, kept, steps, tries = 2 * time.Second, 0.9, 20 * time.Millisecond, 8, 3
	var got []float64
	paces := []float64{pace()}
	for range tries {
		r, err := t.offer(ctx, 0, long)
		if err != nil {
			return 0, err
		}
		got, paces = append(got, float64(len(r.trail))/long.Seconds()), append(paces, pace())
	}
	most := median(got)
	t.pace = median(paces)
	for range steps {
		for range tries {
			r, err := t.offer(ctx, most*share, long)
			if err != nil {
				return 0, err
			}
			if last := stretchOf(r.trail, span{from: long / 2, to: long}); last.Samples > 0 && last.P99 < kept {
				return most, nil
			}
		}
		most *= share
	}
	return most, nil
}

// offer puts a load on the first node for a while; 0 is as much as its clients get.
func (t *steadyTest) offer(ctx context.Context, perSecond float64, long time.Duration) (roamTotal, error) {
	connections, depth := t.f.connections, t.f.depth
	if perSecond == 0 {
		connections, depth = t.f.clients, 1
	}
	r, err := t.client(usualSkew, connections, depth)
	if err != nil {
		return roamTotal{}, err
	}
	defer r.close()
	whole := ctx
	ctx, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	total, err := r.run(ctx, perSecond, ycsbWrites)
	return total, errors.Join(err, whole.Err())
}

// ycsbWrites is the share of writes in YCSB-B.
const ycsbWrites = 0.05

// steadyWarmUp is left out at the start of a round, and cooled between a migration and the calm after it, beside what the
// system itself says that it has still to do.
const (
	steadyWarmUp = 500 * time.Millisecond
	cooled       = 500 * time.Millisecond
)

// mark is a moment, and what the processes had run until then.
type mark struct {
	at      time.Time
	cpu     [2]time.Duration
	machine machineTime
}

func (t *steadyTest) mark() mark { return mark{time.Now(), t.s.cpu(), readMachineTime()} }

// tries does a round until the host left the machine alone meanwhile, at the pace at which the load was found. All but one are disturbed.
func (t *steadyTest) tries(ctx context.Context, c steadyCase) ([]steadyRound, error) {
	all, best, err := calmest(t.f.tries, 0, func() (steadyRound, time.Duration, bool, error) {
		r, err := t.round(ctx, c)
		r.Disturbed = true
		return r, r.disturbance(), r.Failed != "" || t.s.torn, err
	})
	if err != nil {
		return nil, err
	}
	all[best].Disturbed = false
	return all, nil
}

// tolerated is how much of the cores' time the host may take from a round: a tick or two of the clock in some seconds.
const tolerated = 20 * time.Millisecond

// toleratedStop is for how long a core may stand still in what is compared: some of a thousand requests wait for a few milliseconds anyway.
const toleratedStop = 3 * time.Millisecond

// toleratedPace is by what part a core may be slower or faster in a round than when the load was found: of another core it is another part
// of the most. A core whose other half somebody begins to use, or leaves, changes its pace by half.
const toleratedPace = 0.2

// round is one migration with the calm before and after it.
func (t *steadyTest) round(ctx context.Context, c steadyCase) (steadyRound, error) {
	r := steadyRound{System: t.s.name, Mode: c.mode, Skew: c.skew, Load: c.load, Offered: t.offered(c), Found: t.pace}
	r.Paces[0] = pace()
	l, err := t.client(c.skew, t.f.connections, t.f.depth)
	if err != nil {
		return r, err
	}
	defer l.close()
	pulls, err := t.s.pulls(ctx)
	if err != nil {
		return r, err
	}
	defer withoutCollection()()
	w := newWitness()
	defer w.end()
	loadCtx, stop := context.WithCancel(ctx)
	defer stop()
	var seen roamTotal
	var failed error
	ended, over := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(over)
		seen, failed = l.run(loadCtx, r.Offered, ycsbWrites)
		ended <- failed
	}()
	marks, m, err := t.migrate(ctx, c, ended)
	stop()
	<-over
	if err := cmp.Or(err, failed); err != nil {
		return r, err
	}
	r.Paces[1] = pace()
	if m.err != nil {
		r.Failed = m.err.Error()
	}
	now, err := t.s.pulls(ctx)
	if err != nil {
		return r, err
	}
	r.PriorityPulls, r.PriorityKeys = now[0]-pulls[0], now[1]-pulls[1]
	r.Moved, r.Served, r.Took, r.Wall = m.records, m.served, m.took, marks[2].at.Sub(marks[1].at)
	r.Partial, r.Closed, r.Unwitnessed = m.partial, m.closed, w == nil
	r.Stopped = max(w.longest(marks[0].at, marks[2].at), w.longest(marks[3].at, marks[4].at))
	r.Stolen = marks[4].machine.stolen - marks[0].machine.stolen
	r.Bytes = int64(m.records) * int64(workload.Text30.Len()+t.f.value)
	r.Errors, r.Redirected, r.Late = seen.errors, seen.moved+seen.asked, seen.late
	r.sumUp(seen.trail, l.began, marks)
	r.Pulling = r.During
	if !m.began.IsZero() {
		from := m.began.Sub(l.began)
		r.Pulling = stretchOf(seen.trail, span{from: from, to: from + m.served})
	}
	return r, nil
}

// migrate goes through a round while a load is on: calm, a migration, what follows from it, and calm again. The marks are
// where these begin, and the end.
func (t *steadyTest) migrate(ctx context.Context, c steadyCase, ended <-chan error) (marks [5]mark, m moveResult, err error) {
	pause := func(d time.Duration) {
		if err == nil {
			err = sleepUnless(ctx, ended, d)
		}
	}
	pause(steadyWarmUp)
	marks[0] = t.mark()
	pause(t.f.calm)
	if err != nil {
		return marks, m, err
	}
	marks[1] = t.mark()
	m = t.s.move(ctx, rocksteadyModes[c.mode])
	marks[2] = t.mark()
	if ctx.Err() != nil {
		return marks, m, ctx.Err()
	}
	if m.err == nil {
		err = t.s.settled(ctx)
	}
	pause(cooled)
	marks[3] = t.mark()
	pause(t.f.calm)
	marks[4] = t.mark()
	return marks, m, err
}

// sumUp cuts what clients saw where the marks are.
func (r *steadyRound) sumUp(trail []roamPoint, began time.Time, marks [5]mark) {
	cut := func(i int) span {
		a, b := marks[i], marks[i+1]
		s := span{from: a.at.Sub(began), to: b.at.Sub(began)}
		for n := range s.cpu {
			s.cpu[n] = b.cpu[n] - a.cpu[n]
		}
		return s
	}
	r.Calm, r.Before, r.During = stretchOf(trail, cut(0), cut(3)), stretchOf(trail, cut(0)), stretchOf(trail, cut(1))
	r.Aftermath, r.After = stretchOf(trail, cut(2)), stretchOf(trail, cut(3))
	r.Series = seriesOf(trail, marks[1].at.Sub(began), marks[4].at.Sub(began))
}

// withoutCollection keeps this process, whose clients are measured, from collecting its garbage until the round is over.
func withoutCollection() (asUsual func()) {
	runtime.GC()
	was := debug.SetGCPercent(-1)
	return func() { debug.SetGCPercent(was) }
}

// sleepUnless waits, or returns why the load has ended.
func sleepUnless(ctx context.Context, ended <-chan error, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-ended:
		if err == nil {
			err = errors.New("the load has ended")
		}
		return err
	case <-time.After(d):
		return nil
	}
}

// firstLine is the beginning of an error, for a table.
func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line[:min(len(line), 100)]
}
