package call

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/ostrodb/ostro/tenant/library"
)

const (
	// holdsLine is how long a call may have those behind it wait. Then they run beside it.
	holdsLine = 100 * time.Millisecond
	// inLine is for how long after it has first lost a call stands in line.
	inLine = 5 * time.Second
	// mostInLine is how many calls of one tenant may stand in line, and mostInLines those of all. Others run as
	// if they had not lost.
	mostInLine, mostInLines = 1024, 65536
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
	stand  map[*library.Shelf]int // places of a tenant
	all    int
	closed bool
}

// crowd is calls that may be in each other's way: those of one tenant whose first key is the same.
type crowd struct {
	shelf *library.Shelf
	table int
	key   uint64 // of two that share it one waits in vain, now and then
}

var crowdSeed = maphash.MakeSeed()

func (t *Task) crowd() crowd {
	of := t.req.Name
	if len(t.req.Keys) > 0 {
		of = t.req.Keys[0]
	}
	return crowd{t.req.Shelf, t.req.Scope.Table, maphash.Bytes(crowdSeed, of)}
}

// place is one in a line, from when a call joins it until it leaves.
type place struct {
	task     *Task
	crowd    crowd
	until    time.Time // it does not wait longer
	left     bool
	patience *time.Timer // of the first
}

// turns has a call that has lost stand in line, unless it does; true: it is to be started now.
func (h *Host) turns(t *Task) bool {
	if t.lost.IsZero() || t.req.ReadOnly {
		return true
	}
	t.data = far{} // What it wrote was for nothing, and it may be for long that it stands.
	p := &place{task: t, crowd: t.crowd(), until: t.lost.Add(inLine)}
	return h.lines.join(p, h)
}

// join gives whether p's task is to be started now.
func (l *lines) join(p *place, h *Host) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := p.task
	switch {
	case l.closed, t.place != nil && !t.place.left, !time.Now().Before(p.until):
		return true
	case l.all == mostInLines, l.stand[p.crowd.shelf] == mostInLine:
		return true
	case l.of == nil:
		l.of, l.stand = map[crowd][]*place{}, map[*library.Shelf]int{}
	}
	t.place = p
	l.all++
	l.stand[p.crowd.shelf]++
	l.of[p.crowd] = append(l.of[p.crowd], p)
	if len(l.of[p.crowd]) > 1 {
		return false
	}
	p.lead(h)
	return true
}

// lead makes a place the first of its line.
func (p *place) lead(h *Host) {
	p.patience = time.AfterFunc(holdsLine, func() { h.leave(p) })
}

// leave takes a call out of its line if it is the first; who waits there ends when its turn comes. p is nil if it has
// never stood in one.
func (h *Host) leave(p *place) {
	if p == nil {
		return
	}
	for _, next := range h.lines.leave(p, h) {
		h.follow(next.task)
	}
}

// leave gives those who are to be started now: who is the first, and who has waited for long enough.
func (l *lines) leave(p *place, h *Host) (started []*place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.left || l.of[p.crowd][0] != p {
		return nil
	}
	p.patience.Stop()
	l.pop(p.crowd)
	now := time.Now()
	for len(l.of[p.crowd]) > 0 {
		next := l.of[p.crowd][0]
		started = append(started, next)
		if now.Before(next.until) {
			next.lead(h)
			return started
		}
		l.pop(p.crowd)
	}
	delete(l.of, p.crowd)
	return started
}

// pop takes the first of a line out of it.
func (l *lines) pop(c crowd) {
	line := l.of[c]
	line[0].left = true
	line[0] = nil
	l.of[c] = line[1:]
	l.all--
	if l.stand[c.shelf]--; l.stand[c.shelf] == 0 {
		delete(l.stand, c.shelf)
	}
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
	for c, line := range l.of {
		line[0].patience.Stop()
		waiting = append(waiting, line[1:]...)
		for range line {
			l.pop(c)
		}
	}
	l.of = nil
	return waiting
}

// follow starts a call that has stood in line.
func (h *Host) follow(t *Task) {
	if err := h.launch(t); err != nil {
		t.err, t.ended = err, true
		go t.tell() // It takes locks of those who serve, and one of them may be who left.
	}
}
