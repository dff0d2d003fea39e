package sched

import "time"

// lane has the turns of one tenant that wait at one worker. The worker's lock guards it.
type lane struct {
	share *Share
	at    *worker
	next  *lane // in the ring

	linked bool  // in the worker's ring
	aside  aside // its turns wait for something else than the worker
	turns  int
	fresh  list  // turns that have not begun; of long ones those without a thread
	begun  list  // others
	last   bool  // the last turn was a fresh one
	ticket int64 // of a tenant in debt: when a turn of it may run; 0: it has none
	alarm  *time.Timer
	lookAt int64 // when it rings
}

// aside is why a lane's turns cannot be taken.
type aside byte

const (
	no      aside = iota
	forTime       // the tenant has used up its part of the CPU, or waits for its ticket
	forRoom       // none has begun, and too many others have; or none has a thread, and there is none left
)

// list is a queue of turns.
type list struct{ first, last *Turn }

func (l *list) push(t *Turn) {
	t.next = nil
	if l.first == nil {
		l.first = t
	} else {
		l.last.next = t
	}
	l.last = t
}

func (l *list) pop() *Turn {
	t := l.first
	if t != nil {
		l.first, t.next = t.next, nil
	}
	return t
}

// popLate takes the first turn whose time is over.
func (l *list) popLate(now int64) *Turn {
	var before *Turn
	for t := l.first; t != nil; before, t = t, t.next {
		if now <= t.deadline {
			continue
		}
		if before == nil {
			return l.pop()
		}
		if before.next = t.next; t.next == nil {
			l.last = before
		}
		t.next = nil
		return t
	}
	return nil
}

// earliest is the deadline that is next, or otherwise, if that is before all of them.
func (l *list) earliest(otherwise int64) int64 {
	for t := l.first; t != nil; t = t.next {
		otherwise = min(otherwise, t.deadline)
	}
	return otherwise
}

func (l *lane) push(t *Turn) {
	l.turns++
	if t.placed() {
		l.begun.push(t)
	} else {
		l.fresh.push(t)
	}
}

// leastPause is for how long a lane is set aside at least, so that a tenant with little time uses it in few pieces.
const leastPause = time.Millisecond

// pop takes the next turn, or sets the lane aside until its tenant may run again.
func (l *lane) pop(now int64) *Turn {
	t := l.late(now)
	if t == nil {
		if pause := max(l.share.pause(now), l.due(now)); pause > 0 {
			t = l.lateAside(now, pause)
		} else if t = l.choose(now); t != nil {
			l.ticket = 0
		}
	}
	if t != nil {
		l.turns--
	}
	return t
}

// late takes a turn that is only to be told that its time is over. Of short turns the first is the oldest.
func (l *lane) late(now int64) *Turn {
	if t := l.fresh.first; t != nil && now > t.deadline {
		if !l.long() {
			t.share.begun.Add(1)
		}
		return l.fresh.pop()
	}
	return nil
}

// lateAside sets the lane aside, unless a turn in it is late: also one that has begun would wait for its tenant's pause, only to be
// told then.
func (l *lane) lateAside(now, pause int64) *Turn {
	t := l.begun.popLate(now)
	if t == nil && l.long() {
		t = l.fresh.popLate(now) // They are here in the order in which they became long.
	}
	if t != nil {
		return t
	}
	l.aside = forTime
	l.share.throttled.Add(1)
	l.at.crew.s.counts.throttled.Add(1)
	l.look(now, pause)
	return nil
}

// look has the lane looked at again after a pause, or when a turn in it is late.
func (l *lane) look(now, pause int64) {
	d := max(time.Duration(l.patience(now, pause)), leastPause)
	l.lookAt = now + int64(d)
	if l.alarm == nil {
		l.alarm = time.AfterFunc(d, l.release)
		return
	}
	l.alarm.Reset(d)
}

func (l *lane) long() bool { return l.at.crew == l.share.s.long }

// room tells that the first of the fresh turns may go on, and notes that it does.
func (l *lane) room() bool {
	if !l.long() {
		return l.share.begin()
	}
	if !l.share.hush() {
		return false
	}
	l.fresh.first.hushed = true
	return true
}

// patience is when the lane has to be looked at again.
func (l *lane) patience(now, pause int64) int64 {
	next := l.begun.earliest(now + pause)
	if l.long() {
		next = l.fresh.earliest(next)
	} else if t := l.fresh.first; t != nil {
		next = min(next, t.deadline)
	}
	return next - now + 1
}

// choose takes a turn that has begun and one that has not by turns. What would be too many that have begun waits. Of long
// turns the ones that have begun are those that have threads.
func (l *lane) choose(now int64) *Turn {
	if l.fresh.first == nil || (l.begun.first != nil && l.last) {
		l.last = false
		return l.begun.pop()
	}
	if l.room() {
		l.last = true
		return l.fresh.pop()
	}
	if l.begun.first != nil {
		return l.begun.pop()
	}
	l.aside = forRoom
	l.share.held.Store(true)
	// One that ended before it could see this has left room. Others may be held, too, so that is not taken back.
	if l.room() {
		l.aside = no
		return l.fresh.pop()
	}
	pause := int64(l.share.s.opts.Deadline) // Those who leave room tell, but they may take longer than the ones here can wait.
	if l.long() {
		pause = l.share.s.quietPause()
	}
	l.look(now, pause)
	return nil
}

// release lets the lane's turns be taken again.
func (l *lane) release() {
	l.at.mu.Lock()
	back := l.aside != no
	if back {
		l.aside = no
		if l.turns > 0 {
			l.at.link(l)
		}
	}
	l.at.mu.Unlock()
	if back {
		l.at.crew.rouse(l.at)
	}
}

// ring has lanes in the order in which they are next.
type ring struct{ first, last *lane }

func (r *ring) push(l *lane) {
	l.next = nil
	if r.first == nil {
		r.first = l
	} else {
		r.last.next = l
	}
	r.last = l
}

func (r *ring) pop() *lane {
	l := r.first
	if l != nil {
		r.first, l.next = l.next, nil
	}
	return l
}
