package migrate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/background"
)

// stage is what a move does next.
//
//	queued ── sampling ── yielding ── opening ── pulling ── settling ── adopting ── completing ── over
//	   │                     └───────────┴──────────┴──────────┴───────────┴── returning ── over
//	   └── copying ── closing ── over, with late ownership
type stage string

const (
	queued     stage = "queued"
	sampling   stage = "sampling"
	yielding   stage = "yielding"
	opening    stage = "opening"
	pulling    stage = "pulling"
	settling   stage = "settling"
	adopting   stage = "adopting"
	completing stage = "completing"
	returning  stage = "returning"
	copying    stage = "copying"
	closing    stage = "closing"
	over       stage = "over"
)

// move is one migration, as its target carries it out. Only run's goroutine changes it, but for what is atomic.
type move struct {
	d      *Driver
	o      *Options
	id     ID
	ranges view.Ranges
	want   meta.Migration // as it was seen last
	log    *slog.Logger
	ends   context.Context // ends with the driver; set before others know of the move

	at       stage
	since    time.Time // when it entered that
	began    time.Time
	served   time.Time // when all was here
	silence  silence
	warned   time.Time // when it was last told that this stage fails
	returns  string    // why, if nobody cancelled it
	yielded  yielded
	heard    time.Time          // when it came
	closed   time.Duration      // for how long nobody served the ranges, at the most: until heard, and when that is over until it was; 0 if that is not known
	hasAsked bool               // the source was asked to yield
	answer   *peer.Stream       // the question's, until all of it was heard
	first    []byte             // entries that came with yielded
	rest     []byte             // entries that came before it and are judged later
	room     *store.ArrivalRoom // for the arrival
	prepared func()             // to be called when what was made ready is not needed any more; nil if nothing was
	lines    []*peer.Line       // for pulls
	arrival  *store.Arrival
	pulls    *pulls
	priority *priority
	late     bool    // the source serves until the end
	copied   *copied // then

	pulled         atomic.Int64  // how many pulls were answered
	advances       atomic.Int64  // and how many of what they brought is done with, whatever fails after it
	quiet          chan struct{} // closed when nothing is imported any more
	now            atomic.Pointer[stage]
	waitsFor       atomic.Pointer[string]
	bytes, records atomic.Int64
	landed         atomic.Int64 // bytes, of those that came through memory that both nodes have
	asks, asked    atomic.Int64 // priority pulls, and keys in them
	// How long lanes waited for the source, and replayed, in nanoseconds.
	awaited, replayed atomic.Int64
	total             atomic.Int64 // about how many bytes there are
	knows             atomic.Pointer[store.Arrival]
	cold              coldCounts
	receiving         receiving
}

// coldCounts are how many cold records came in which way.
type coldCounts struct {
	shared atomic.Int64 // read in the shared tier
	asked  atomic.Int64 // asked for at the source
	sent   atomic.Int64 // sent by the source's cleaner
}

func (c *coldCounts) followed() meta.Followed {
	return meta.Followed{Shared: c.shared.Load(), Asked: c.asked.Load(), Sent: c.sent.Load()}
}

func newMove(d *Driver, m meta.Migration) *move {
	mv := &move{
		d: d, o: &d.o, id: m.ID, ranges: m.Ranges, want: m, began: time.Now(), priority: newPriority(), quiet: make(chan struct{}),
		late: m.Options.Ownership == meta.OwnershipLate,
		log:  d.o.Log.With("migration", m.ID, "source", string(m.Source)),
		ends: context.Background(),
	}
	mv.enter(queued)
	switch m.Stage { // Whoever drove it before is gone: this node's former self.
	case meta.Moving:
		mv.enter(yielding)
	case meta.Copying:
		mv.enter(copying)
	}
	return mv
}

func (m *move) enter(s stage) {
	now := time.Now()
	if m.at != "" {
		m.log.Debug("a stage of the migration is over", "stage", string(m.at), "took", now.Sub(m.since).Round(time.Microsecond).String(), "next", string(s))
	}
	m.at, m.since, m.warned = s, now, time.Time{}
	m.now.Store(&s)
}

var (
	errEnded  = errors.New("the migration has ended")
	errCancel = errors.New("the migration is cancelled")
)

// run goes from stage to stage until the migration is over or ctx ends.
func (m *move) run(ctx context.Context) {
	defer m.priority.end()
	telling, quiet := context.WithCancel(ctx)
	defer quiet()
	m.d.tasks.Go(func() { m.tell(telling) })
	for m.at != over && ctx.Err() == nil {
		m.once(ctx)
	}
	if m.at == over {
		m.leave(ctx)
	}
	if ctx.Err() != nil {
		m.stop()
	}
}

// stop lets operations go that wait, when the node stops in the middle of it, and has nobody use the store any more.
func (m *move) stop() {
	m.receiving.end()
	if m.pulls != nil {
		m.pulls.close()
	}
	if m.arrival != nil {
		m.arrival.Release(store.ErrStopping)
	}
	m.dropCopy()
	m.dropLines()
	m.room.Close()
}

// once carries out one stage, and begins it again after a while if it failed.
func (m *move) once(ctx context.Context) {
	working, stop := context.WithCancelCause(ctx)
	was, watched := m.at, make(chan struct{})
	go func() {
		defer close(watched)
		m.watch(working, stop, was)
	}()
	next, err := m.step(working)
	cause := context.Cause(working)
	stop(nil)
	<-watched
	switch {
	case ctx.Err() != nil:
	case errors.Is(cause, errEnded):
		m.enter(over)
	case errors.Is(cause, errCancel) && was != returning:
		m.log.Info("the migration is cancelled: what came is returned")
		m.enter(returning)
	case err == nil:
		m.enter(next)
	default:
		m.failed(ctx, err)
	}
}

// watch stops a stage when etcd says that there is another thing to do.
func (m *move) watch(ctx context.Context, stop context.CancelCauseFunc, at stage) {
	for {
		changed := m.o.Cache.Changed()
		now, there := m.o.Cache.Snapshot().Migrations[m.id]
		switch {
		case there && now.Stage == meta.Returning && at == returning:
		case !there, !driven(now.Stage):
			stop(errEnded)
		case now.Cancel && at != returning:
			stop(errCancel)
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// failed waits before the next attempt. A source that is silent for too long, but has its lease, may never answer this
// node, or this node not make safe what came: then that is returned to the source by way of etcd.
func (m *move) failed(ctx context.Context, err error) {
	m.warn(err)
	begun := m.o.Cache.Snapshot().Migrations[m.id].Stage
	unheard := m.unheard(begun, err)
	if m.at == closing {
		m.enter(copying) // What was missed nobody knows.
	}
	if (m.at == copying || begun == meta.Wanted) && unheard > m.o.Patience {
		why := fmt.Errorf("%s does not answer %s: %s", m.want.Source, m.o.Self, reason(err))
		if _, err := m.giveUp(ctx, why); err == nil {
			m.enter(over)
			return
		}
	}
	if begun == meta.Moving && m.at != returning && m.at != completing && unheard > m.o.Patience {
		m.returns = m.stuck() + ": " + reason(err)
		m.log.Warn("the migration does not go on: what came is returned", "why", m.returns)
		m.enter(returning)
		return
	}
	pauseFor(ctx, retryPause)
}

// warn tells that a stage fails: it is tried twenty times a second, and told once and then now and then.
func (m *move) warn(err error) {
	level := slog.LevelDebug
	if now := time.Now(); now.Sub(m.warned) >= logEvery {
		level, m.warned = slog.LevelWarn, now
	}
	m.log.Log(context.Background(), level, "a step of the migration failed; it is tried again", "stage", string(m.at), "why", err)
}

// unheard is for how long the source has been silent, when a step has failed. While nothing has changed hands nobody is kept waiting: then
// a source that answers is not silent, though it may refuse, as it does while it starts, and people are told why the migration waits.
func (m *move) unheard(begun meta.Stage, err error) time.Duration {
	if begun == meta.Wanted {
		m.waits(reason(err))
		if !errors.Is(err, peer.ErrUnreachable) && !errors.Is(err, peer.ErrLost) {
			m.silence.end()
		}
	}
	return m.silence.lasts(m.advances.Load())
}

// stuck says in which way the migration has not gone on.
func (m *move) stuck() string {
	if m.at == adopting {
		return fmt.Sprintf("%s could not make safe what came from %s for %s", m.o.Self, m.want.Source, m.o.Patience)
	}
	return fmt.Sprintf("nothing came from %s to %s for %s", m.want.Source, m.o.Self, m.o.Patience)
}

const retryPause = 50 * time.Millisecond

func pauseFor(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// step carries out the stage and returns the next.
func (m *move) step(ctx context.Context) (next stage, err error) {
	switch m.at {
	case queued:
		return m.queue(ctx)
	case sampling:
		return m.sample(ctx)
	case yielding: // Until the ranges are open clients wait, so that is one step.
		background.Promptly(func() {
			if next, err = m.transfer(ctx); err == nil && next == opening {
				m.enter(opening)
				next, err = m.open(ctx)
			}
			background.Ease()
			m.hearOut(ctx, err == nil && next == pulling)
		})
		return next, err
	case opening:
		background.Promptly(func() { next, err = m.open(ctx) })
		return next, err
	case pulling:
		return m.pull(ctx)
	case settling:
		return m.settle(ctx)
	case adopting:
		return m.adopt(ctx)
	case completing:
		return m.complete(ctx)
	case returning:
		return m.giveBack(ctx)
	case copying:
		return m.copy(ctx)
	case closing:
		return m.close(ctx)
	}
	return over, nil
}

// queue waits until the migration may begin.
func (m *move) queue(ctx context.Context) (stage, error) {
	var never error
	s, err := m.o.Cache.Wait(ctx, func(s *meta.Snapshot) bool {
		mig, there := s.Migrations[m.id]
		if !there || mig.Stage != meta.Wanted {
			return there
		}
		err := m.may(s, mig)
		if errors.Is(err, meta.ErrNotYet) {
			m.waits(err.Error())
			return false
		}
		never = err
		return true
	})
	if err != nil {
		return queued, err
	}
	m.waits("")
	m.silence.end() // It was not the source that it waited for.
	if never != nil {
		return m.giveUp(ctx, never)
	}
	m.want = s.Migrations[m.id]
	m.log.Info("a migration to this node begins", "share", fmt.Sprintf("%.3f%%", 100*m.want.Ranges.Fraction()), "options", fmt.Sprintf("%+v", m.want.Options))
	if m.late {
		return copying, nil
	}
	if m.want.Stage == meta.Wanted && m.want.Options.Sample {
		return sampling, nil
	}
	return yielding, nil
}

// giveUp ends a migration that can never begin.
func (m *move) giveUp(ctx context.Context, why error) (stage, error) {
	member, err := m.o.Member()
	if err != nil {
		return queued, err
	}
	m.log.Warn("the migration cannot begin", "why", why)
	if err := member.FailMigration(ctx, m.id, why.Error()); err != nil {
		return queued, err
	}
	return m.seen(ctx)
}

// seen waits until the end that was written is seen here: watch then ends the stage.
func (m *move) seen(ctx context.Context) (stage, error) {
	_, err := m.o.Cache.Wait(ctx, func(s *meta.Snapshot) bool { return s.Migrations[m.id].Stage.Ended() })
	return over, err
}

func (m *move) waits(why string) { m.waitsFor.Store(&why) }

func (m *move) halt(ctx context.Context, s Step) error {
	if s == Pulling {
		m.pulled.Add(1) // Every pull comes by here.
	}
	tell := func(s Step) {
		m.log.Warn("the migration halts here, as it was told to", "step", string(s))
		m.waits("told to halt at " + string(s))
	}
	if err := (halt{m.o.HaltAt}).here(ctx, s, tell); err != nil {
		return err
	}
	return Halts{m.o.Self, m.o.HaltDir}.Here(ctx, s, tell)
}

// sample asks the source to note what its clients use, so that it can send that first. Meanwhile memory is made ready
// here for what will come.
func (m *move) sample(ctx context.Context) (stage, error) {
	if err := m.samples(ctx); err != nil {
		m.log.Warn("the source took no sample; the migration goes on without", "why", err)
	}
	return yielding, m.halt(ctx, AfterSample)
}

// prepareFor is how long memory is made ready after the sample was taken, at the most.
const prepareFor = 800 * time.Millisecond

func (m *move) samples(ctx context.Context) error {
	s, err := m.o.Peers.Stream(ctx, m.want.Source, methodSample, transfer{ID: m.id})
	if err != nil {
		return err
	}
	defer s.Close()
	s.Stall(silent)
	if m.prepared == nil {
		m.prepared = m.o.Store.Preparing()
	}
	preparing, stop := context.WithCancel(ctx)
	var done sync.WaitGroup
	defer done.Wait()
	defer stop()
	for {
		var said sampled
		_, last, err := s.Next(&said)
		if err != nil {
			return err
		}
		if last {
			break
		}
		m.total.Store(said.Bytes)
		done.Go(func() {
			if err := m.o.Store.Prepare(preparing, Ranges(m.ranges), said.Records, said.Bytes); err != nil {
				m.log.Warn("memory for what will come could not be made ready", "why", err)
			}
		})
	}
	timer := time.AfterFunc(prepareFor, stop)
	defer timer.Stop()
	done.Wait()
	return nil
}
