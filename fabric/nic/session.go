package nic

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/ring"
)

// Session is one program's use of the engine. When it ends, with the program or
// before, all that was made through it goes.
type Session struct {
	engine *Engine
	name   string

	bellMem *fabric.Memory
	event   int

	// All below belongs to the loop.
	bells    *ring.Doorbells
	words    int // of bells in use
	heard    func(bell uint32)
	byBell   []*qp
	domains  map[uint32]*domain
	lastID   uint32
	banned   map[string]bool
	starving bool // something waits for room in a completion queue
	ended    bool
	metrics  fabric.Metrics
}

// Attach opens a session for a device of this name.
func (e *Engine) Attach(name string) (*Session, error) {
	mem, err := fabric.NewMemory(ring.DoorbellsBytes)
	if err != nil {
		return nil, err
	}
	event, err := ring.NewEvent()
	if err != nil {
		_ = mem.Close()
		return nil, fmt.Errorf("nic: create an event: %w", err)
	}
	s := &Session{
		engine: e, name: name, bellMem: mem, event: event, bells: ring.NewDoorbells(mem.Bytes()),
		words: 1, byBell: make([]*qp, 1, 64), domains: map[uint32]*domain{}, banned: map[string]bool{},
	}
	s.heard = s.hear
	if gone := e.do(func() {
		if err = e.poll.add(event, wakes, nil); err == nil {
			e.sessions = append(e.sessions, s)
		}
	}); gone != nil {
		err = gone
	}
	if err != nil {
		_ = mem.Close()
		_ = unix.Close(event)
		return nil, fmt.Errorf("nic: attach %q: %w", name, err)
	}
	return s, nil
}

// Doorbells are the session's, for its program to map, and the event that wakes
// the engine when it sleeps. Both are the session's to close.
func (s *Session) Doorbells() (*fabric.Memory, int) { return s.bellMem, s.event }

// Close ends the session. When it returns, nothing of its memory is touched any more.
func (s *Session) Close() error { return s.engine.do(func() { s.engine.detach(s) }) }

func (e *Engine) detach(s *Session) {
	if s.ended {
		return
	}
	s.ended = true
	for _, d := range s.domains {
		e.closeDomain(d)
	}
	e.totals.Add(s.metrics)
	e.poll.remove(s.event)
	for i, x := range e.sessions {
		if x == s {
			e.sessions = append(e.sessions[:i], e.sessions[i+1:]...)
			break
		}
	}
	_ = unix.Close(s.event)
	_ = s.bellMem.Close()
}

// hear continues what the program rang for.
func (s *Session) hear(bell uint32) {
	if bell != ring.Kick {
		if bell < uint32(len(s.byBell)) && s.byBell[bell] != nil {
			s.engine.enqueue(s.byBell[bell])
		}
		return
	}
	if !s.starving {
		return
	}
	s.starving = false
	for _, q := range s.byBell {
		if q != nil {
			s.engine.enqueue(q)
		}
	}
}

func (s *Session) newBell(q *qp) error {
	for i := 1; i < len(s.byBell); i++ {
		if s.byBell[i] == nil {
			s.byBell[i], q.bell = q, uint32(i)
			return nil
		}
	}
	if len(s.byBell) == ring.Bells {
		return fmt.Errorf("nic: %d queue pairs are open; close some", ring.Bells-1)
	}
	q.bell = uint32(len(s.byBell))
	s.byBell = append(s.byBell, q)
	s.words = len(s.byBell)/64 + 1
	s.words = min(s.words, ring.Bells/64)
	return nil
}

func (s *Session) dropBell(q *qp) { s.byBell[q.bell] = nil }

// closeDomain lets go of everything in it.
func (e *Engine) closeDomain(d *domain) {
	for _, q := range e.qps {
		if q != nil && q.dom == d {
			e.retire(q)
			_ = q.mem.Close()
		}
	}
	for _, c := range e.cqs {
		if c != nil && c.dom == d {
			e.dropCQ(c)
			_ = c.mem.Close()
		}
	}
	for _, r := range e.regions {
		if r != nil && r.dom == d && e.remove(r) {
			_ = r.mem.Close()
		}
	}
	delete(d.session.domains, d.id)
}

func (e *Engine) dropCQ(c *cq) {
	e.cqs[c.number] = nil
	for _, q := range c.waiters {
		q.waitsAt = nil
		e.enqueue(q) // It finds its WAIT without a queue.
	}
	c.waiters = nil
}

func randomToken() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // Never fails: crypto/rand ends the process instead.
	return binary.LittleEndian.Uint64(b[:])
}

// ban breaks all connections with a peer and remembers its name.
func (s *Session) ban(peer string) {
	s.banned[peer] = true
	for _, q := range s.byBell {
		if q != nil && (q.wants && q.want.Peer == peer || q.peer != nil && q.peer.session.name == peer) {
			s.engine.fail(q, fabric.PeerLost)
		}
	}
}

// rnrWait turns a configured wait into the one to use.
func rnrWait(d time.Duration) time.Duration {
	if d == 0 {
		return fabric.DefaultRNRWait
	}
	return d
}
