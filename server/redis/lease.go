package redis

import "math"

const (
	never = math.MaxInt64
	// leaseMillis is how old an answer of Cluster.Alive may be for a round to
	// begin. The replies need a fresh one in any case.
	leaseMillis = 20
)

// leaseView is what a loop last heard of the node's lease.
//
// Invariant: a reply that tells of data leaves only after Alive was true at a
// time when the command had run and what it did was durable.
type leaseView struct {
	alive bool
	asked int64 // when, in unix milliseconds
}

// enterCluster takes the routing of the round, under the session's guard.
func (l *loop) enterCluster(cluster Cluster) {
	l.routing = cluster.Routing()
	l.call.routing = l.routing
	l.noting = l.gauge.Begin()
	if !l.lease.alive || l.now-l.lease.asked >= leaseMillis {
		l.stillAlive()
	}
}

// stillAlive asks whether the node may answer now.
func (l *loop) stillAlive() bool {
	was := l.lease.alive
	l.lease = leaseView{l.srv.cfg.Cluster.Alive(), l.now}
	if was && !l.lease.alive {
		l.srv.log.Warn("the node's lease has ended: clients get no answers until it is back", "loop", l.id)
	}
	return l.lease.alive
}

// expose notes that c's replies of this round tell of data.
func (l *loop) expose(c *conn) {
	c.net.waitUntil = 0
	c.net.exposed = true
	l.exposed = true
}

// settleExposed closes the connections whose commands ran in a round that may
// not be answered: whether they ran before the lease ended or after, nobody knows.
func (l *loop) settleExposed() {
	if !l.exposed {
		return
	}
	l.exposed = false
	if l.stillAlive() {
		return
	}
	for _, c := range l.active {
		if c.net.exposed && !c.net.closed {
			l.srv.totals.leaseClosed.Add(1)
			l.close(c)
		}
	}
}

// lookAtCluster lets connections go on that waited for another routing, and
// gives up replies that will never be released because the lease has ended.
func (l *loop) lookAtCluster() {
	changed := l.rerouted.Load() && l.rerouted.Swap(false)
	if len(l.waiting) > 0 && (changed || l.stop || l.now >= l.waitUntil) {
		l.goOnWaiting()
	}
	if changed {
		l.closeDeadLinks()
	}
	if len(l.retries) > 0 && (changed || l.stop || l.now >= l.retryAt) {
		l.tryAgain()
	}
	if len(l.held) > 0 && (changed || l.now-l.lease.asked >= sweepMillis) && !l.stillAlive() {
		l.dropUnanswered()
	}
}

// dropUnanswered closes the connections whose replies are held, for they may not leave.
func (l *loop) dropUnanswered() {
	for _, h := range l.held {
		l.srv.totals.leaseClosed.Add(int64(len(h.conns)))
	}
	l.dropHeld()
}

// clusterPatience is how many milliseconds the loop may sleep with all of
// that in mind.
func (l *loop) clusterPatience(usual int) int {
	until := int64(never)
	if len(l.waiting) > 0 {
		until = max(l.waitUntil-l.now, 1)
	}
	if len(l.retries) > 0 {
		until = min(until, max(l.retryAt-l.now, 1))
	}
	if len(l.held) > 0 {
		until = min(until, sweepMillis)
	}
	if until == never || usual >= 0 && int64(usual) < until {
		return usual
	}
	return int(until)
}

// routingChanged is called from other goroutines.
func (s *Server) routingChanged() {
	for _, l := range s.startedLoops() {
		l.rerouted.Store(true)
		l.poller.wake()
	}
}
