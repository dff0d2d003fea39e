package txn_test

import (
	"errors"
	"testing"
	"time"

	"github.com/ostrodb/ostro/cluster/txn"
)

// A record is on its way, somebody waits for it to execute it, and the log is closed. The
// group is not: what is issued now would come in between of what the next log does.
func TestAClosedLogExecutesNothing(t *testing.T) {
	s := newScene(t, small, plain, 1)
	check(t, s.net.Hold(loop(s.spies[0])))
	must(s.l.Append(s.ctx(), entry(0, "appended")))(t)
	began, executed := make(chan struct{}), make(chan error, 1)
	go func() {
		close(began)
		_, err := s.l.ExecuteAndAdvance(s.ctx())
		executed <- err
	}()
	<-began
	check(t, s.l.Close())
	check(t, s.net.Release(loop(s.spies[0])))
	if err := <-executed; !errors.Is(err, txn.ErrClosed) {
		t.Errorf("the execution ends with %v", err)
	}
	p := must(s.g.Flush(s.ctx(), 0, 8))(t) // Behind all that was issued.
	must(p.Wait(s.ctx()))(t)
	s.want(0, make([]byte, 8))
	s.l = must(txn.Initialize(s.ctx(), s.g, plain))(t)
	s.want(0, []byte("appended"))
	check(t, s.l.Close())
}

// The last thing that a log did is still on its way when the next one looks at the heads.
func TestALogWaitsForWhatTheOneBeforeItHasInFlight(t *testing.T) {
	s := newScene(t, small, plain, 1)
	check(t, s.l.AppendWait(s.ctx(), entry(0, "executed")))
	_, bytes := s.l.Unexecuted()
	check(t, s.net.Delay(loop(s.spies[0]), 10*time.Millisecond))
	must(s.g.CAS(s.ctx(), 88, 0, bytes, 1))(t) // As ExecuteAndAdvance does at its end.
	check(t, s.l.Close())
	l, err := txn.Initialize(s.ctx(), s.g, plain)
	check(t, err)
	check(t, l.Close())
}
