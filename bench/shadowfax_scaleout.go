package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/ostrodb/ostro/client"
	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
)

// scaleout is one move of a part of the hash space to an idle node.
type scaleout struct {
	Case        string        `json:"case"`
	Recorded    bool          `json:"recorded"`     // the nodes kept the results of writes, as they do for clients as they are
	BudgetBytes int64         `json:"budget_bytes"` // memory of each node; 0: enough
	Moved       uint64        `json:"records_moved"`
	Cold        int64         `json:"records_that_follow"` // of which the target had word only when it was served
	Bytes       int64         `json:"bytes_moved"`
	Took        time.Duration `json:"took_ns"`     // until the target carried all load of it
	Released    time.Duration `json:"released_ns"` // until nobody needed the source's log any more; 0: it was not waited for
	Share       float64       `json:"share"`       // of the operations, that the target gets in the end
	Carried     time.Duration `json:"carried_ns"`  // until the target began to execute nine tenths of its share; 0: never
	MostWaiting float64       `json:"most_waiting"`
	WaitedUntil time.Duration `json:"waited_until_ns"` // when operations were last seen to wait at the target; 0: never
	Calm        stretch       `json:"calm"`
	During      stretch       `json:"during"`
	Settling    *stretch      `json:"settling,omitempty"` // from when it was served until it was released, if that was waited for
	After       stretch       `json:"after"`
	Series      []shadowPoint `json:"series"`
}

// shadowPoint is one look at both nodes. Rates are since the look before it.
type shadowPoint struct {
	At        float64 `json:"at_seconds"` // since the move was asked for
	Source    float64 `json:"source_ops_per_second"`
	Target    float64 `json:"target_ops_per_second"`
	Waiting   float64 `json:"waiting_at_target"`
	Remaining int64   `json:"remaining"`
}

// scaleoutCase is how a tenth moves: with how much memory, and cold records in which way.
type scaleoutCase struct {
	name  string
	share float64 // of the data in memory
	cold  string
}

// measureScaleout moves a part of the hash space: §3.5.5.1 and 3.5.5.2.
func (x *shadow) measureScaleout(ctx context.Context) error {
	cases := []scaleoutCase{{"in memory", 1, ""}}
	for _, mode := range x.f.cold {
		cases = append(cases, scaleoutCase{"budget, " + mode, x.f.budget, mode})
	}
	for _, c := range cases {
		s, err := x.scaleOut(ctx, c, false)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		x.out.Scaleout = append(x.out.Scaleout, s)
	}
	return nil
}

// measureCompaction waits after a move until no log depends on another: §3.3.3.
func (x *shadow) measureCompaction(ctx context.Context) error {
	mode := knownCold[0]
	s, err := x.scaleOut(ctx, scaleoutCase{"until released, " + mode, x.f.budget, mode}, true)
	if err != nil {
		return err
	}
	x.out.Compaction = append(x.out.Compaction, s)
	return nil
}

// scaleOut is one case. With release it goes on until nobody needs the source's log.
func (x *shadow) scaleOut(ctx context.Context, c scaleoutCase, release bool) (s scaleout, err error) {
	x.p.begin("start a cluster: %s", c.name)
	s = scaleout{Case: c.name, Recorded: !x.f.unrecorded}
	var settings []string
	if c.share < 1 {
		s.BudgetBytes = x.f.shadowBudget(c.share)
		settings = []string{"memory-limit=" + strconv.FormatInt(s.BudgetBytes, 10), "segment-size=" + strconv.Itoa(segmentFor(s.BudgetBytes))}
	}
	pair, err := x.startPair(ctx, settings...)
	if err != nil {
		return s, err
	}
	defer pair.end()
	if err := pair.give(ctx, pair.target, pair.source, pair.owned(pair.target)); err != nil {
		return s, err
	}
	mine := placesOf(view.RangesOf(view.Whole), uint64(x.f.records))
	x.p.begin("load %s records, %s", x.f.records, c.name)
	if err := loadInto(ctx, x.p, pair.source.Redis, mine, x.f.value); err != nil {
		return s, err
	}
	x.p.begin("move %.0f%% of the hash space, %s", 100*x.f.fraction, c.name)
	if err := x.scaleUnderLoad(ctx, pair, mine, c, release, &s); err != nil {
		return s, err
	}
	x.p.begin("read back %s records, %s", x.f.records, c.name)
	return s, mine.verify(ctx, x.p, pair.cache.Snapshot(), pair.cluster, x.f.value)
}

// scaleUnderLoad has clients work before, during and after the move.
func (x *shadow) scaleUnderLoad(ctx context.Context, pair *shadowCluster, mine estate, c scaleoutCase, release bool, s *scaleout) error {
	crowd, err := newCrowd(ctx, pair.cluster, mine, x.f.clients, client.Options{Unrecorded: x.f.unrecorded})
	if err != nil {
		return err
	}
	defer crowd.close()
	moves := pair.owned(pair.source).Share(x.f.fraction)
	s.Share = shareOf(moves, mine, crowd.drawer(0))
	loadCtx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- crowd.run(loadCtx) }()
	if err := sleepUnless(ctx, ended, steadyWarmUp); err != nil {
		return err
	}
	look, err := newShadowWatch(pair)
	if err != nil {
		return err
	}
	began := time.Now()
	go look.run(loadCtx)
	if err := sleepUnless(ctx, ended, x.f.calm); err != nil {
		return err
	}
	asked := time.Now()
	m, err := pair.moveTo(ctx, moves, coldOptions(c.cold), ended, look)
	if err != nil {
		return err
	}
	served := time.Now()
	settled := served
	if release {
		if m, err = pair.released(ctx, m.ID, ended); err != nil {
			return err
		}
		s.Released, settled = m.Ended.Sub(m.Began), time.Now()
	}
	if err := sleepUnless(ctx, ended, x.f.after); err != nil {
		return err
	}
	over := time.Now()
	stop()
	if err := <-ended; err != nil {
		return err
	}
	look.wait()
	at, _ := servedAt(m)
	s.Took, s.Moved, s.Bytes, s.Cold = at.Sub(m.Began), uint64(m.Records), m.Bytes, coldLeft(m)
	s.Calm, s.During, s.After = crowd.stretch(began, asked), crowd.stretch(asked, served), crowd.stretch(settled, over)
	if release {
		meanwhile := crowd.stretch(served, settled)
		s.Settling = &meanwhile
	}
	s.Series = look.series(asked)
	s.Carried, s.MostWaiting, s.WaitedUntil = carried(s.Series, s.Share), mostWaiting(s.Series), waitedUntil(s.Series)
	return nil
}

// moveTo asks for a move and waits until the target carries it.
func (c *shadowCluster) moveTo(ctx context.Context, ranges view.Ranges, o meta.MigrationOptions, ended <-chan error, look *shadowWatch) (meta.Migration, error) {
	m, err := c.store.Migrate(ctx, meta.MigrationRequest{Source: view.NodeID(c.source.ID), Target: view.NodeID(c.target.ID), Ranges: ranges, Options: o})
	if err != nil {
		return m, err
	}
	look.follow(m.ID)
	return c.until(ctx, m.ID, ended, func(m meta.Migration) bool {
		_, is := servedAt(m)
		return is
	})
}

// released waits until a migration has ended.
func (c *shadowCluster) released(ctx context.Context, id uint64, ended <-chan error) (meta.Migration, error) {
	return c.until(ctx, id, ended, func(m meta.Migration) bool { return m.Stage.Ended() })
}

// until waits for something of a migration, or for the load to end, which it must not.
func (c *shadowCluster) until(ctx context.Context, id uint64, ended <-chan error, good func(meta.Migration) bool) (meta.Migration, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	type found struct {
		s   *meta.Snapshot
		err error
	}
	come := make(chan found, 1)
	go func() {
		s, err := c.cache.Wait(ctx, func(s *meta.Snapshot) bool { m := s.Migrations[id]; return good(m) || m.Stage.Ended() })
		come <- found{s, err}
	}()
	select {
	case f := <-come:
		if f.err != nil {
			return meta.Migration{}, fmt.Errorf("wait for migration %d: %w", id, f.err)
		}
		m := f.s.Migrations[id]
		if !good(m) || m.Stage == meta.Failed || m.Stage == meta.Cancelled {
			return m, fmt.Errorf("migration %d is %s: %s", id, m.Stage, m.Why)
		}
		return m, nil
	case err := <-ended:
		if err == nil {
			err = errors.New("the load has ended")
		}
		return meta.Migration{}, err
	}
}

// carried is from when on the target had nine tenths of its share, for two looks: a rate is that of the time since the look
// before. Closer looks would cost the move more than they tell.
func carried(series []shadowPoint, share float64) time.Duration {
	enough := func(p shadowPoint) bool { return p.Target >= 0.9*share*(p.Source+p.Target) && p.Target > 0 }
	for i, p := range series {
		if p.At <= 0 || !enough(p) || i+1 == len(series) || !enough(series[i+1]) {
			continue
		}
		if i > 0 && series[i-1].At > 0 {
			p = series[i-1]
		}
		return time.Duration(p.At * 1e9)
	}
	return 0
}

func mostWaiting(series []shadowPoint) (most float64) {
	for _, p := range series {
		if p.At > 0 {
			most = max(most, p.Waiting)
		}
	}
	return most
}

// waitedUntil is when operations were last seen to wait because of the move: more than ever before it.
func waitedUntil(series []shadowPoint) (last time.Duration) {
	usual := 0.0
	for _, p := range series {
		if p.At <= 0 {
			usual = max(usual, p.Waiting)
		} else if p.Waiting > usual {
			last = time.Duration(p.At * 1e9)
		}
	}
	return last
}
