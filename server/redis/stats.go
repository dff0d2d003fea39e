package redis

import "sync"

// commandStat is what INFO commandstats shows of one command.
type commandStat struct {
	calls, micros    int64
	rejected, failed int64 // refused before it ran; ran and answered an error
}

// stats are one worker's counters. The worker counts into plain fields of its
// own (tally) and adds them here once per round, so that counting costs no
// atomic operation per command.
type stats struct {
	mu        sync.Mutex
	commands  []commandStat // by command.index
	processed int64
	bytesIn   int64
	bytesOut  int64
	errors    map[string]int64 // by error code, for INFO errorstats
}

// commandStats merges every worker's counters, by command.index.
func (s *Server) commandStats() []commandStat { return nil }

// errorStats merges every worker's error counts by code.
func (s *Server) errorStats() map[string]int64 { return nil }

// resetStats is CONFIG RESETSTAT.
func (s *Server) resetStats() {}

// kill closes another client. It returns at once; the client's own loop does it.
func (s *Server) kill(c *conn) {}

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
