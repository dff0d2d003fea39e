package redis

import "sync/atomic"

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
		ActiveLoops:         int(s.active.Load()),
	}
	for _, l := range s.startedLoops() {
		st := &l.tally.stats
		st.mu.Lock()
		m.Commands += st.calls
		m.BytesIn += st.bytesIn
		m.BytesOut += st.bytesOut
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
	queryLimitClosed    atomic.Int64
	protocolErrors      atomic.Int64
	authFailures        atomic.Int64
}

func (t *totals) reset() {
	t.connectionsAccepted.Store(0)
	t.connectionsRejected.Store(0)
	t.outputLimitClosed.Store(0)
	t.queryLimitClosed.Store(0)
	t.protocolErrors.Store(0)
	t.authFailures.Store(0)
}
