package redis

import (
	"sync/atomic"

	calls "github.com/ostrodb/ostro/server/call"
)

// Metrics are the front door's own numbers.
type Metrics struct {
	Clients             int64 // connected now
	ConnectionsAccepted int64
	ConnectionsRejected int64
	Commands            int64
	BytesIn, BytesOut   int64
	ProtocolErrors      int64
	OutputLimitClosed   int64
	QueryLimitClosed    int64
	Redirected          int64 // commands answered with MOVED or ASK
	Waited              int64 // commands that waited for a range that was being recovered, or was changing hands
	LeaseClosed         int64 // connections closed because the lease ended before their replies left
	Forwarded           int64 // commands that a proxy sent to their owners
	ForwardsLost        int64 // clients closed because nobody knows what became of a forwarded write
	Replies             ReplyTimes
	ActiveLoops         int // the first so many of Loops serve now
	Loops               []LoopMetrics
}

// LoopMetrics are one network loop's numbers.
type LoopMetrics struct {
	Clients     int64
	Rounds      int64
	Commands    int64
	BusyNanos   int64   // time spent outside waiting, since the start
	Utilisation float64 // over the last moments, 0 to 1
}

// Metrics returns the numbers of this moment.
func (s *Server) Metrics() Metrics {
	m := Metrics{
		Clients:             int64(s.clients.len()),
		ConnectionsAccepted: s.totals.connectionsAccepted.Load(),
		ConnectionsRejected: s.totals.connectionsRejected.Load(),
		ProtocolErrors:      s.totals.protocolErrors.Load(),
		OutputLimitClosed:   s.totals.outputLimitClosed.Load(),
		QueryLimitClosed:    s.totals.queryLimitClosed.Load(),
		Redirected:          s.totals.redirected.Load(),
		Waited:              s.totals.waited.Load(),
		LeaseClosed:         s.totals.leaseClosed.Load(),
		Forwarded:           s.totals.forwarded.Load(),
		ForwardsLost:        s.totals.forwardsLost.Load(),
		ActiveLoops:         int(s.active.Load()),
	}
	for _, l := range s.startedLoops() {
		st := &l.tally.stats
		st.mu.Lock()
		m.Commands += st.calls
		m.BytesIn += st.bytesIn
		m.BytesOut += st.bytesOut
		m.Replies.merge(&st.replies)
		lm := LoopMetrics{Rounds: st.rounds, Commands: st.calls}
		st.mu.Unlock()
		lm.Clients = l.num.Load()
		lm.BusyNanos = l.load.busyNanos()
		lm.Utilisation = l.load.utilisation()
		m.Loops = append(m.Loops, lm)
	}
	return m
}

// totals count over the server's life, as INFO stats shows them. What happens
// per command is counted in the loops and merged on demand, see stats.go.
type totals struct {
	connectionsAccepted atomic.Int64
	connectionsRejected atomic.Int64
	outputLimitClosed   atomic.Int64

	redirected, waited, leaseClosed, forwarded, forwardsLost atomic.Int64 // in a cluster
	queryLimitClosed                                         atomic.Int64
	protocolErrors                                           atomic.Int64
	authFailures                                             atomic.Int64
}

func (t *totals) reset() {
	t.connectionsAccepted.Store(0)
	t.connectionsRejected.Store(0)
	t.outputLimitClosed.Store(0)
	t.queryLimitClosed.Store(0)
	t.protocolErrors.Store(0)
	t.authFailures.Store(0)
	for _, n := range []*atomic.Int64{&t.redirected, &t.waited, &t.leaseClosed, &t.forwarded, &t.forwardsLost} {
		n.Store(0)
	}
}

// Calls tells what became of calls of functions.
func (s *Server) Calls() calls.Metrics { return s.calls.Metrics() }
