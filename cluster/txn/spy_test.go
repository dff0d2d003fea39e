package txn_test

import (
	"sync"

	"github.com/ostrodb/ostro/fabric"
)

// spy is a device that remembers its queue pairs, for faults to be put into them.
type spy struct {
	fabric.Device
	mu  sync.Mutex
	qps []fabric.QP
}

type spyDomain struct {
	fabric.Domain
	spy *spy
}

func (s *spy) NewDomain(tenant string) (fabric.Domain, error) {
	d, err := s.Device.NewDomain(tenant)
	return spyDomain{d, s}, err
}

func (d spyDomain) NewQP(c fabric.QPConfig) (fabric.QP, error) {
	q, err := d.Domain.NewQP(c)
	d.spy.mu.Lock()
	defer d.spy.mu.Unlock()
	d.spy.qps = append(d.spy.qps, q)
	return q, err
}

// forget begins a new list.
func (s *spy) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.qps = nil
}

// loop is the queue pair by which a chain's replica changes its own memory: the deepest.
func (s *spy) loop() (deepest fabric.QP) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.qps {
		if deepest == nil || q.SendDepth() > deepest.SendDepth() {
			deepest = q
		}
	}
	return deepest
}

// any is one of them all.
func (s *spy) any(i int) fabric.QP {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.qps[i%len(s.qps)]
}
