package sched

import (
	"sync/atomic"
	"time"
)

// A tenant whose long turns come to nothing, since they never end by themselves, owes the time that they took. Until long
// turns of it that do end have taken as much, it and all others who owe share little: a quantum at a time, by tickets. What one of
// them runs beyond its ticket only itself has to wait for. Threads
// of low priority alone do not keep such turns out of the way: the kernel takes a core that one of them has for busy, and puts
// those who serve behind one another on the next.

const (
	// mostDebt is what a tenant owes at most, so that it can be paid.
	mostDebt = int64(time.Second)
	// debtors is of how much of the time of the long workers tenants in debt have one part, together.
	debtors = 20
)

// Waste says that the turn, which is about to end, has come to nothing and would have gone on.
func (t *Turn) Waste() { t.wasted = true }

// settleDebt adds a long turn's time to what its tenant owes, or takes it off. Of two at the same time one may be lost.
func (h *Share) settleDebt(used int64, wasted bool) {
	if wasted {
		h.debt.Store(min(h.debt.Load()+used, mostDebt))
	} else if was := h.debt.Load(); was > 0 {
		h.debt.Store(max(was-used, 0))
	}
}

// inDebt tells that a long turn of the tenant may run with a ticket only.
func (h *Share) inDebt() bool { return h.debt.Load() > 0 && !h.s.closed.Load() }

// tickets are moments at which a turn of a tenant in debt may run for a quantum.
type tickets struct{ next atomic.Int64 }

// take gives the next one: now, or later.
func (k *tickets) take(now, apart int64) int64 {
	for {
		was := k.next.Load()
		at := max(was, now)
		if k.next.CompareAndSwap(was, at+apart) {
			return at
		}
	}
}

// overrun has a tenant rest whose turn ran for longer than its ticket was for: a host call that copies much does not come back in
// its midst. Others in debt do not wait for that, and nobody rests for longer than half of what a call has, so that its next one
// can still end.
func (h *Share) overrun(now, by int64) {
	rest, most := by*debtors/int64(len(h.s.long.workers)), int64(h.s.opts.Deadline/2)
	for {
		was := h.rests.Load()
		if h.rests.CompareAndSwap(was, min(max(was, now)+rest, now+most)) {
			return
		}
	}
}

// due is how long the lane's tenant has to wait for its ticket; 0: it has one, or needs none.
func (l *lane) due(now int64) int64 {
	if !l.long() || !l.share.inDebt() {
		return 0
	}
	if rest := l.share.rests.Load() - now; rest > 0 {
		return rest // It takes its ticket then: one for later would put off those of others.
	}
	if l.ticket == 0 {
		c := l.at.crew
		l.ticket = c.s.tickets.take(now, c.quantum*debtors/int64(len(c.workers)))
	}
	return max(l.ticket-now, 0)
}
