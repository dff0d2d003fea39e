package redis

import (
	"time"
)

// Loops are added when one is saturated while processors are idle, and given
// back when fewer suffice: on few cores every loop beyond need takes time from
// clients, and a busy loop works in larger batches.
//
//	a loop above hotLoad for hotWindows windows, half a core idle:
//	    hand connections to the coolest active loop, or to a further one
//	all loops together below coolLoad of one loop less, for coolWindows:
//	    the last loop hands its connections back
//
// Loops with thin rounds, a few commands each, spend most of their time on being
// woken. One loop less gathers more in each round (see gatherer), and needs about
// half of the time for it: then thinLoad and thinWindows count.
//
// Loops with heavy commands, such as calls of functions, spend hardly any of it on
// that, and gain nothing by larger batches: less of a core has to be idle then.
const (
	balanceMillis = 50
	hotLoad       = 0.9
	hotWindows    = 4
	coolLoad      = 0.6
	coolWindows   = 40
	thinLoad      = 1.1
	thinWindows   = 10
	restWindows   = 10 // after a move
	idleCores     = 0.5
	heavyCores    = 0.25 // instead of idleCores
	heavyNanos    = 2000 // that heavy commands take
)

// balancer is a loop's part in the decision.
type balancer struct {
	hot, cool int  // consecutive windows
	rest      int  // windows to sit out
	heavy     bool // commands of the last window were
	idle      idleMeter
}

// wants is how much of the cores has to be idle for a further loop.
func (b *balancer) wants() float64 {
	if b.heavy {
		return heavyCores
	}
	return idleCores
}

// balance is called when a window of the loop has ended.
func (l *loop) balance(share float64) {
	b := &l.balancer
	active := int(l.srv.active.Load())
	if l.id >= active {
		l.moveTo(l.srv.coolest(l, active), len(l.conns))
		return
	}
	if b.rest > 0 {
		b.rest--
		return
	}
	if share < hotLoad || len(l.conns) < 2 {
		b.hot = 0
	} else if b.hot++; b.hot == 1 {
		b.idle.start()
	} else if b.hot >= hotWindows {
		b.hot = 0
		b.rest = restWindows
		if b.idle.cores() >= b.wants() {
			l.shed(share, active)
		}
	}
	if l.id == 0 && active > 1 {
		l.giveBack(active)
	}
}

// shed hands connections to a loop that has time for them, so that both have
// about the same load.
func (l *loop) shed(share float64, active int) {
	to := l.srv.coolest(l, active)
	theirs := 1.0
	if to != nil {
		theirs = to.load.utilisation()
	}
	if theirs > share/2 {
		if to = l.srv.activate(active); to == nil {
			return
		}
		theirs = 0
	}
	n := int(float64(len(l.conns)) * (share - theirs) / (2 * share))
	l.moveTo(to, max(n, 1))
	to.post(message{run: func() { to.balancer.rest = restWindows }})
}

// giveBack retires the last loop when the others can do its work too.
func (l *loop) giveBack(active int) {
	sum, load, windows := 0.0, thinLoad, thinWindows
	for _, other := range l.srv.startedLoops()[:active] {
		sum += other.load.utilisation()
		if !other.thin.Load() {
			load, windows = coolLoad, coolWindows
		}
	}
	if sum > load*float64(active-1) {
		l.balancer.cool = 0
		return
	}
	if l.balancer.cool++; l.balancer.cool < windows {
		return
	}
	l.balancer.cool = 0
	last := l.srv.startedLoops()[active-1]
	l.srv.active.Store(int32(active - 1))
	last.poller.wake() // it finds that it is not active any more
}

// coolest is the active loop with the least load, other than l; nil for none.
func (s *Server) coolest(l *loop, active int) *loop {
	var best *loop
	for _, other := range s.startedLoops()[:active] {
		if other != l && (best == nil || other.load.utilisation() < best.load.utilisation()) {
			best = other
		}
	}
	return best
}

// activate puts one more loop to work. It returns nil if there are as many as
// allowed, or if somebody else just did.
func (s *Server) activate(active int) *loop {
	s.loopsMu.Lock()
	defer s.loopsMu.Unlock()
	if s.stopping || active >= s.maxLoops || int(s.active.Load()) != active {
		return nil
	}
	loops := s.startedLoops()
	if active == len(loops) {
		if _, err := s.addLoop(); err != nil {
			s.log.Error("starting another network loop failed; going on with those there are", "error", err)
			s.maxLoops = active
			return nil
		}
		loops = s.startedLoops()
	}
	s.active.Store(int32(active + 1))
	return loops[active]
}

// housekeep does what is due now and then, after a round.
func (l *loop) housekeep() {
	worked := l.load.worked
	if share, ended := l.load.window(balanceMillis * time.Millisecond); ended {
		l.balancer.heavy = l.gather.heavy(worked)
		l.thin.Store(l.gather.thin())
		if l.srv.adaptive {
			l.balance(share)
		}
		active := int(l.srv.active.Load())
		l.drowsy = share < quietLoad && l.id < active && (l.id > 0 || active == 1)
	}
	if l.acceptAgain != 0 && l.now >= l.acceptAgain {
		l.acceptResumed()
	}
	if l.now-l.swept >= sweepMillis {
		l.swept = l.now
		l.sweep()
	}
}
