package fabrictest

import (
	"slices"
	"sync"

	"github.com/ostrodb/ostro/fabric"
)

// Spy is a device that remembers its queue pairs, for faults to be put into them.
type Spy struct {
	fabric.Device
	mu  sync.Mutex
	qps []fabric.QP
}

type spyDomain struct {
	fabric.Domain
	spy *Spy
}

// NewDomain makes a domain whose queue pairs are remembered.
func (s *Spy) NewDomain(tenant string) (fabric.Domain, error) {
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

// QPs are those that were made, in their order.
func (s *Spy) QPs() []fabric.QP {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.qps)
}

// Forget begins a new list.
func (s *Spy) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.qps = nil
}
