package nic

import (
	"fmt"
	"os"
	"time"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/ring"
)

// Verb is what a control request asks for.
type Verb string

// Verbs.
const (
	NewDomain    Verb = "new-domain"
	CloseDomain  Verb = "close-domain"
	Register     Verb = "register"
	RegisterRing Verb = "register-ring"
	Revoke       Verb = "revoke"
	NewCQ        Verb = "new-cq"
	CloseCQ      Verb = "close-cq"
	NewQP        Verb = "new-qp"
	Connect      Verb = "connect"
	CloseQP      Verb = "close-qp"
	Ban          Verb = "ban"
	Count        Verb = "metrics"
)

// Request is a control request of a program. It is on no data path.
type Request struct {
	Verb   Verb
	Domain uint32 `json:",omitempty"`
	Tenant string `json:",omitempty"`

	Key    uint64        `json:",omitempty"` // Revoke
	Offset int64         `json:",omitempty"` // Register: of the memory in the file that comes along
	Bytes  int           `json:",omitempty"`
	Access fabric.Access `json:",omitempty"`

	CQ        uint32        `json:",omitempty"`
	Depth     uint64        `json:",omitempty"` // NewCQ
	QP        uint32        `json:",omitempty"`
	SendCQ    uint32        `json:",omitempty"`
	RecvCQ    uint32        `json:",omitempty"`
	SendDepth uint64        `json:",omitempty"`
	RecvDepth uint64        `json:",omitempty"`
	RNRWait   time.Duration `json:",omitempty"`
	Repeat    bool          `json:",omitempty"`

	Endpoint *fabric.Endpoint `json:",omitempty"`
	Peer     string           `json:",omitempty"` // Ban
}

// Response answers a Request. For queues the shared memory's file comes along.
type Response struct {
	Error    string           `json:",omitempty"`
	Number   uint32           `json:",omitempty"` // of the domain or queue
	Bell     uint32           `json:",omitempty"`
	Key      uint64           `json:",omitempty"`
	Local    uint32           `json:",omitempty"`
	Bytes    uint64           `json:",omitempty"`
	Endpoint *fabric.Endpoint `json:",omitempty"`
	Metrics  *fabric.Metrics  `json:",omitempty"`
}

// Call executes a control request. The file, if any, stays the caller's; so does
// the engine's memory that it may get back: it is to be mapped, not closed.
func (s *Session) Call(r Request, file *os.File) (Response, *fabric.Memory, error) {
	switch r.Verb {
	case NewDomain:
		return s.newDomain(r)
	case CloseDomain:
		return s.inDomain(r, func(d *domain) error { s.engine.closeDomain(d); return nil })
	case Register:
		return s.register(r, file)
	case RegisterRing:
		return s.registerRing(r)
	case Revoke:
		return s.revoke(r)
	case NewCQ:
		return s.newCQ(r)
	case CloseCQ:
		return s.closeCQ(r)
	case NewQP:
		return s.newQP(r)
	case Connect:
		return s.connect(r)
	case CloseQP:
		return s.closeQP(r)
	case Ban:
		return Response{}, nil, s.do(func() error { s.ban(r.Peer); return nil })
	case Count:
		m := fabric.Metrics{}
		err := s.do(func() error {
			m = s.metrics
			m.Malformed, m.Unauthorized = s.engine.totals.Malformed, s.engine.totals.Unauthorized
			return nil
		})
		return Response{Metrics: &m}, nil, err
	}
	return Response{}, nil, fmt.Errorf("nic: no control request %q", r.Verb)
}

// do runs f in the loop, unless the session has ended.
func (s *Session) do(f func() error) error {
	err := fabric.ErrClosed
	if gone := s.engine.do(func() {
		if !s.ended {
			err = f()
		}
	}); gone != nil {
		return gone
	}
	return err
}

func (s *Session) inDomain(r Request, f func(*domain) error) (Response, *fabric.Memory, error) {
	return Response{}, nil, s.do(func() error {
		d := s.domains[r.Domain]
		if d == nil {
			return fmt.Errorf("nic: no domain %d: %w", r.Domain, fabric.ErrClosed)
		}
		return f(d)
	})
}

func (s *Session) newDomain(r Request) (Response, *fabric.Memory, error) {
	var out Response
	err := s.do(func() error {
		s.lastID++
		s.domains[s.lastID] = &domain{id: s.lastID, tenant: r.Tenant, session: s}
		out.Number = s.lastID
		return nil
	})
	return out, nil, err
}

// register maps the program's memory a second time, for the engine. Should its
// file be cut later, the region fails and nothing else does.
func (s *Session) register(r Request, file *os.File) (Response, *fabric.Memory, error) {
	if file == nil {
		return Response{}, nil, fmt.Errorf("nic: register: no file came along")
	}
	return s.addRegion(r, file, r.Offset, r.Bytes)
}

func (s *Session) registerRing(r Request) (Response, *fabric.Memory, error) {
	var file *os.File
	var bytes int
	if _, _, err := s.inDomain(r, func(d *domain) error {
		q := s.engine.qp(r.QP)
		if q == nil || q.dom != d {
			return fmt.Errorf("nic: no queue pair %d in domain %d: %w", r.QP, r.Domain, fabric.ErrClosed)
		}
		file, bytes = q.mem.File(), int(q.shared.Send.Depth())*fabric.SlotBytes
		return nil
	}); err != nil {
		return Response{}, nil, err
	}
	return s.addRegion(r, file, ring.SendSlotsOffset, bytes)
}

func (s *Session) addRegion(r Request, file *os.File, off int64, bytes int) (Response, *fabric.Memory, error) {
	mem, err := fabric.MapFile(file, off, bytes)
	if err != nil {
		return Response{}, nil, err
	}
	reg := &region{base: basePointer(mem), bytes: uint64(bytes), access: r.Access & fabric.Everything, mem: mem, medium: hasMedium(file)}
	_, _, err = s.inDomain(r, func(d *domain) error {
		reg.dom = d
		return s.engine.install(reg)
	})
	if err != nil {
		_ = mem.Close()
		return Response{}, nil, err
	}
	return Response{Key: reg.key, Local: reg.local, Bytes: reg.bytes}, nil, nil
}

func (s *Session) revoke(r Request) (Response, *fabric.Memory, error) {
	var gone *region
	err := s.do(func() error {
		place := r.Key & placeMask
		if place >= uint64(len(s.engine.regions)) {
			return fabric.ErrClosed
		}
		reg := s.engine.regions[place]
		if reg == nil || reg.key != r.Key || reg.dom.session != s {
			return fabric.ErrClosed
		}
		if s.engine.remove(reg) {
			gone = reg
		}
		return nil
	})
	if gone != nil {
		_ = gone.mem.Close()
	}
	return Response{}, nil, err
}
