// Package driver is the program's side of the soft NIC: it implements the
// interfaces of fabric by writing into queues that it shares with an engine.
// The engine may be in this process or in another one; only the control
// requests take a different way.
package driver

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/nic"
	"github.com/ostrodb/ostro/fabric/ring"
)

// Control is the way to an engine.
type Control interface {
	// Call executes a control request. Memory that comes back is the caller's to close.
	Call(r nic.Request, file *os.File) (nic.Response, *fabric.Memory, error)
	// Doorbells are the session's; they stay valid until Close returns.
	Doorbells() (mem []byte, event int)
	// Lost is closed when the engine is gone.
	Lost() <-chan struct{}
	Close() error
}

// Device is a fabric.Device on an engine.
type Device struct {
	name    string
	caps    fabric.Caps
	control Control
	event   int
	bells   *ring.Doorbells
	lost    atomic.Bool
	closed  atomic.Bool
	quit    chan struct{}

	// gate guards the doorbells against Close: they are mapped memory.
	gate sync.RWMutex

	mu   sync.Mutex
	live map[*CQ]struct{} // to wake when the engine is lost
	qps  map[*QP]struct{}
}

// New makes a device of a way to an engine, which it closes in the end.
func New(name string, caps fabric.Caps, control Control) *Device {
	mem, event := control.Doorbells()
	d := &Device{
		name: name, caps: caps, control: control, event: event, bells: ring.NewDoorbells(mem),
		live: map[*CQ]struct{}{}, qps: map[*QP]struct{}{}, quit: make(chan struct{}),
	}
	go d.watch()
	return d
}

// Name is the device's peer name.
func (d *Device) Name() string { return d.name }

// Caps tells what the provider can do.
func (d *Device) Caps() fabric.Caps { return d.caps }

// Close ends the session with the engine.
func (d *Device) Close() error {
	if d.closed.Swap(true) {
		return nil
	}
	close(d.quit)
	d.mu.Lock()
	cqs, qps := d.live, d.qps
	d.live, d.qps = nil, nil
	d.mu.Unlock()
	d.gate.Lock()
	err := d.control.Close()
	d.gate.Unlock()
	for q := range qps {
		q.unmap()
	}
	for c := range cqs {
		c.unmap()
	}
	return err
}

// forget unmaps the queues of a closed domain.
func (d *Device) forget(gone *domain) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for q := range d.qps {
		if q.domain == gone {
			delete(d.qps, q)
			q.unmap()
		}
	}
	for c := range d.live {
		if c.domain == gone {
			delete(d.live, c)
			c.unmap()
		}
	}
}

// watch wakes everybody when the engine is lost.
func (d *Device) watch() {
	select {
	case <-d.control.Lost():
	case <-d.quit:
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for q := range d.qps {
		q.lose()
	}
	d.lost.Store(true) // Who hears of the loss finds the queue pairs broken.
	for c := range d.live {
		c.wake()
	}
}

// ringBell tells the engine that a queue pair has news.
func (d *Device) ringBell(bell uint32) {
	d.gate.RLock()
	defer d.gate.RUnlock()
	if !d.closed.Load() && d.bells.Ring(bell) {
		ring.Signal(d.event)
	}
}

func (d *Device) call(r nic.Request, file *os.File) (nic.Response, *fabric.Memory, error) {
	if d.closed.Load() {
		return nic.Response{}, nil, fabric.ErrClosed
	}
	if d.lost.Load() {
		return nic.Response{}, nil, fabric.ErrNICLost
	}
	return d.control.Call(r, file)
}

// NewDomain opens a protection domain.
func (d *Device) NewDomain(tenant string) (fabric.Domain, error) {
	out, _, err := d.call(nic.Request{Verb: nic.NewDomain, Tenant: tenant}, nil)
	if err != nil {
		return nil, err
	}
	return &domain{device: d, id: out.Number}, nil
}

// Ban breaks all connections with a peer for good.
func (d *Device) Ban(peer string) error {
	_, _, err := d.call(nic.Request{Verb: nic.Ban, Peer: peer}, nil)
	return err
}

// Metrics asks the engine for the device's counters.
func (d *Device) Metrics() (fabric.Metrics, error) {
	out, _, err := d.call(nic.Request{Verb: nic.Count}, nil)
	if err != nil {
		return fabric.Metrics{}, err
	}
	if out.Metrics == nil {
		return fabric.Metrics{}, errors.New("fabric: the NIC gave no metrics")
	}
	return *out.Metrics, nil
}
