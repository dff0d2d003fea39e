package redis

import calls "github.com/ostrodb/ostro/server/call"

// fuelSlice is how much fuel calls of one connection may use in a round. Connections with more to run than that share a
// round's slice among them, so that others soon have their turn, however many those are.
type fuelSlice struct {
	round int64 // counts them
	each  int64
}

// leastSlice is a few short calls: below it, a round costs more than what runs in it.
const leastSlice = calls.SliceFuel / 32

// begin opens a round in which so many connections go on.
func (s *fuelSlice) begin(going int) {
	s.round++
	s.each = max(calls.SliceFuel/int64(max(going, 1)), leastSlice)
}

// fuelBefore is what the loop's calls had used before those of c in this round, if only its own are counted.
func (l *loop) fuelBefore(c *conn) int64 {
	n := &c.net
	if n.round != l.fuel.round {
		n.round, n.fuel = l.fuel.round, 0
	}
	return l.call.caller.Used() - n.fuel
}
