package migrate

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/engine/store"
)

func TestLossesOfAConnectionAreNoSilenceWhileRecordsComeBetweenThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s silence
		for i, step := range []struct {
			after    time.Duration
			advances int64
			want     time.Duration
		}{
			{0, 5, 0},
			{10 * time.Second, 5, 10 * time.Second},
			{10 * time.Second, 6, 0}, // One pull was done with.
			{15 * time.Second, 900, 0},
			{15 * time.Second, 900, 15 * time.Second},
			{time.Second, 900, 16 * time.Second},
		} {
			time.Sleep(step.after) // Of the bubble's clock.
			if got := s.lasts(step.advances); got != step.want {
				t.Errorf("step %d: silence lasts %s, want %s", i, got, step.want)
			}
		}
		s.end()
		if got := s.lasts(900); got != 0 {
			t.Errorf("after an answer it lasts %s", got)
		}
	})
}

// faulty is a source that fails pulls when it is told to.
func faulty(t *testing.T, records int, fails func(pull int64) bool) *pulls {
	var n atomic.Int64
	p := pullsOf(t, filled(t, records), 1000, 3, meta.MigrationOptions{}, func(s *Source, to *peer.Server) {
		to.HandleQuietly(methodPull, func(ctx context.Context, c *peer.Call) (any, []byte, error) {
			if fails(n.Add(1)) {
				return nil, nil, errors.New("the source has a bad minute")
			}
			return s.pull(ctx, c)
		})
	})
	p.m.o.SharedMemory = false
	return p
}

func TestPullsGoOnAfterAFailureFromWhereTheyWere(t *testing.T) {
	const n = 5000
	p := faulty(t, n, func(pull int64) bool { return pull%40 == 0 })
	failures := 0
	for last := int64(0); p.all(t.Context()) != nil; failures++ {
		now := p.m.advances.Load()
		if now == last {
			t.Fatal("nothing came between two failures")
		}
		last = now
	}
	if failures < 3 {
		t.Fatalf("only %d failures", failures)
	}
	// What other lanes had under way when one failed comes again, and no more.
	if got, most := p.m.records.Load(), int64(n+failures*3*10); got < n || got > most {
		t.Errorf("%d records came, of %d, though %d failures repeat few", got, n, failures)
	}
	ss := session(t, p.m.o.Store)
	for i := range n {
		if st := readKey(t, ss, i); st != store.OK {
			t.Fatalf("key %d is %s", i, st)
		}
	}
}

func TestASourceThatFailsAtTheSamePullAgainAndAgainCountsAsSilent(t *testing.T) {
	p := faulty(t, 5000, func(pull int64) bool { return pull > 60 })
	if p.all(t.Context()) == nil {
		t.Fatal("pulls that fail came to their end")
	}
	was := p.m.advances.Load()
	for range 3 {
		if p.all(t.Context()) == nil {
			t.Fatal("pulls that fail came to their end")
		}
	}
	if now := p.m.advances.Load(); was == 0 || now != was {
		t.Errorf("%d advances, then %d though nothing came", was, now)
	}
}

func TestAReturnBlamesTheSourceForItsSilenceOnly(t *testing.T) {
	m := &move{o: &Options{Self: "n2", Patience: 15 * time.Second}, want: meta.Migration{Source: "n1"}}
	for at, want := range map[stage]string{
		pulling:  "nothing came from n1 to n2 for 15s",
		settling: "nothing came from n1 to n2 for 15s",
		adopting: "n2 could not make safe what came from n1 for 15s",
	} {
		if m.at = at; m.stuck() != want {
			t.Errorf("%s: %q, want %q", at, m.stuck(), want)
		}
	}
}

func TestTheReasonOfAReturnIsOneLineThatNamesTheCause(t *testing.T) {
	err := errors.Join(context.Canceled, errors.New("read: connection reset"), errors.New("dial: refused"))
	if got, want := reason(err), "read: connection reset; dial: refused"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
