package call

import (
	"sync"
	"time"

	"github.com/ostrodb/ostro/tenant/library"
)

const (
	// holdsLine is how long a call may have those behind it wait. Then they run beside it.
	holdsLine = 100 * time.Millisecond
	// mostInLines is how many calls may stand in line. Others run as if they had not lost.
	mostInLines = 4096
)

// lines have calls that met each other's changes run one after the other.
//
// Of long calls on one key that run at the same time one is applied, and the others have run for nothing: in a crowd
// each would lose again and again. So who has lost stands in line, and only the first of a line runs. Whoever has not
// lost yet runs beside it.
//
// Invariant: the first of a line has been started, the others have not. Who leaves has the next one started.
type lines struct {
	mu     sync.Mutex
	of     map[crowd][]*place
	stand  int // places in all of them
	closed bool
}

// crowd is calls that may be in each other's way: those of one tenant whose first key is the same.
type crowd struct {
	shelf *library.Shelf
	table int
	key   string
}

// place is one in a line, from when a call joins it until it leaves.
type place struct {
	task     *Task
	crowd    crowd
	left     bool
	patience *time.Timer // of the first
}

// join has a call stand in line, unless it does; true: it is the first, and to be started.
func (l *lines) join(t *Task) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || t.place != nil && !t.place.left || l.stand == mostInLines {
		return true
	}
	l.stand++
	p := &place{task: t, crowd: t.crowd()}
	t.place = p
	if l.of == nil {
		l.of = map[crowd][]*place{}
	}
	l.of[p.crowd] = append(l.of[p.crowd], p)
	if len(l.of[p.crowd]) > 1 {
		return false
	}
	p.lead(t.host)
	return true
}

func (t *Task) crowd() crowd {
	c := crowd{shelf: t.req.Shelf, table: t.req.Scope.Table}
	if len(t.req.Keys) > 0 {
		c.key = string(t.req.Keys[0])
	}
	return c
}

// lead makes a place the first of its line.
func (p *place) lead(h *Host) {
	p.patience = time.AfterFunc(holdsLine, func() { h.leave(p) })
}

// leave takes the first of a line out of it; nil is who has never stood in one.
func (h *Host) leave(p *place) {
	if p == nil {
		return
	}
	if next := h.lines.leave(p, h); next != nil {
		h.follow(next.task)
	}
}

// leave gives who is the first now, if there is one.
func (l *lines) leave(p *place, h *Host) (next *place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.left {
		return nil
	}
	p.left = true
	l.stand--
	p.patience.Stop()
	rest := l.of[p.crowd][1:]
	if len(rest) == 0 {
		delete(l.of, p.crowd)
		return nil
	}
	l.of[p.crowd] = rest
	rest[0].lead(h)
	return rest[0]
}

// disperse ends all lines: nobody waits in one any more.
func (h *Host) disperse() {
	for _, p := range h.lines.close() {
		h.follow(p.task)
	}
}

// close gives all who have not been started.
func (l *lines) close() (waiting []*place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, line := range l.of {
		line[0].patience.Stop()
		for _, p := range line {
			p.left = true
		}
		waiting = append(waiting, line[1:]...)
	}
	l.of, l.stand = nil, 0
	return waiting
}

// follow starts a call that has stood in line.
func (h *Host) follow(t *Task) {
	if err := h.launch(t); err != nil {
		t.err, t.ended = err, true
		go t.wake() // It takes locks of those who serve, and one of them may be who left.
	}
}
