package nic

import (
	"fmt"
	"unsafe"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/ring"
)

func basePointer(m *fabric.Memory) unsafe.Pointer { return unsafe.Pointer(&m.Bytes()[0]) }

// deep checks a depth that a program asks for.
func deep(d uint64) error {
	if d == 0 || d > ring.MaxDepth || d&(d-1) != 0 {
		return fmt.Errorf("nic: depth %d is no power of two up to %d", d, ring.MaxDepth)
	}
	return nil
}

func (s *Session) newCQ(r Request) (Response, *fabric.Memory, error) {
	if r.Depth != 0 {
		if err := deep(r.Depth); err != nil {
			return Response{}, nil, err
		}
	}
	mem, err := fabric.NewMemory(ring.CompletionsBytes(r.Depth))
	if err != nil {
		return Response{}, nil, err
	}
	c := &cq{mem: mem, shared: ring.NewCompletions(mem.Bytes(), r.Depth)}
	_, _, err = s.inDomain(r, func(d *domain) error {
		c.dom = d
		c.number = place(&s.engine.cqs, c)
		return nil
	})
	if err != nil {
		_ = mem.Close()
		return Response{}, nil, err
	}
	return Response{Number: c.number}, mem, nil
}

// place puts something into the first free place but 0.
func place[T any](list *[]*T, what *T) uint32 {
	for i := 1; i < len(*list); i++ {
		if (*list)[i] == nil {
			(*list)[i] = what
			return uint32(i)
		}
	}
	*list = append(*list, what)
	return uint32(len(*list) - 1)
}

// cq finds a completion queue of a domain.
func (d *domain) cq(number uint32) (*cq, error) {
	e := d.session.engine
	if number >= uint32(len(e.cqs)) || e.cqs[number] == nil || e.cqs[number].dom != d {
		return nil, fmt.Errorf("nic: no completion queue %d in domain %d: %w", number, d.id, fabric.ErrClosed)
	}
	return e.cqs[number], nil
}

func (s *Session) closeCQ(r Request) (Response, *fabric.Memory, error) {
	var gone *cq
	_, _, err := s.inDomain(r, func(d *domain) error {
		c, err := d.cq(r.CQ)
		if err != nil {
			return err
		}
		if c.users > 0 {
			return fmt.Errorf("nic: %d queues still complete into completion queue %d; close them first", c.users, r.CQ)
		}
		s.engine.dropCQ(c)
		gone = c
		return nil
	})
	if gone != nil {
		_ = gone.mem.Close()
	}
	return Response{}, nil, err
}

func (s *Session) newQP(r Request) (Response, *fabric.Memory, error) {
	for _, d := range []uint64{r.SendDepth, r.RecvDepth} {
		if err := deep(d); err != nil {
			return Response{}, nil, err
		}
	}
	mem, err := fabric.NewMemory(ring.PairBytes(r.SendDepth, r.RecvDepth))
	if err != nil {
		return Response{}, nil, err
	}
	q := &qp{
		session: s, mem: mem, token: randomToken(), rnrWait: rnrWait(r.RNRWait), repeats: r.Repeat,
		shared: ring.NewPair(mem.Bytes(), r.SendDepth, r.RecvDepth),
	}
	var ep fabric.Endpoint
	_, _, err = s.inDomain(r, func(d *domain) error {
		ep, err = s.engine.addQP(d, q, r)
		return err
	})
	if err != nil {
		_ = mem.Close()
		return Response{}, nil, err
	}
	return Response{Number: q.number, Bell: q.bell, Endpoint: &ep}, mem, nil
}

func (e *Engine) addQP(d *domain, q *qp, r Request) (fabric.Endpoint, error) {
	var err error
	if q.sendCQ, err = d.cq(r.SendCQ); err != nil {
		return fabric.Endpoint{}, err
	}
	if q.recvCQ, err = d.cq(r.RecvCQ); err != nil {
		return fabric.Endpoint{}, err
	}
	if err := d.session.newBell(q); err != nil {
		return fabric.Endpoint{}, err
	}
	q.dom = d
	q.sendCQ.users++
	q.recvCQ.users++
	q.number = place(&e.qps, q)
	return q.endpoint(e.addr), nil
}

func (s *Session) connect(r Request) (Response, *fabric.Memory, error) {
	if r.Endpoint == nil {
		return Response{}, nil, fmt.Errorf("nic: connect: no endpoint")
	}
	return s.inDomain(r, func(d *domain) error {
		q := s.engine.qp(r.QP)
		switch {
		case q == nil || q.dom != d:
			return fmt.Errorf("nic: no queue pair %d: %w", r.QP, fabric.ErrClosed)
		case q.wants || q.state != fabric.Fresh:
			return fmt.Errorf("nic: queue pair %d is connected already, or broken", r.QP)
		case s.banned[r.Endpoint.Peer]:
			s.metrics.RefusedPeer++
			return fmt.Errorf("nic: connect to %q: %w", r.Endpoint.Peer, fabric.ErrBanned)
		}
		if err := q.closeRounds(); err != nil {
			return err
		}
		q.want, q.wants = *r.Endpoint, true
		if q.want.NIC == s.engine.id {
			s.engine.join(q)
			return nil
		}
		return s.engine.dial(q)
	})
}

func (s *Session) closeQP(r Request) (Response, *fabric.Memory, error) {
	var gone *qp
	_, _, err := s.inDomain(r, func(d *domain) error {
		q := s.engine.qp(r.QP)
		if q == nil || q.dom != d {
			return fabric.ErrClosed
		}
		s.engine.retire(q)
		gone = q
		return nil
	})
	if gone != nil {
		_ = gone.mem.Close()
	}
	return Response{}, nil, err
}
