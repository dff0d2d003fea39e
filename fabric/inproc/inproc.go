// Package inproc is the fabric inside one process: all devices of a Network are
// on one engine. It is for tests and single nodes, and can make things go wrong.
package inproc

import (
	"time"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/driver"
	"github.com/ostrodb/ostro/fabric/nic"
	"github.com/ostrodb/ostro/fabric/ring"
)

// Network is an engine whose devices reach each other.
type Network struct{ engine *nic.Engine }

// New starts a network.
func New(c nic.Config) (*Network, error) {
	e, err := nic.New(c)
	if err != nil {
		return nil, err
	}
	return &Network{e}, nil
}

// Close ends the network; its devices find their NIC gone.
func (n *Network) Close() error { return n.engine.Close() }

// Device opens a device with a peer name.
func (n *Network) Device(name string) (*driver.Device, error) {
	c, err := driver.Local(n.engine, name)
	if err != nil {
		return nil, err
	}
	return driver.New(name, Caps, c), nil
}

// Caps is what the provider can do.
var Caps = fabric.Caps{Wait: true, Rings: true, Persist: true, Counts: true, WatchOrder: ring.InOrder}

// CutAfter breaks q's connection when its requests have placed n more bytes, in
// the middle of a request if they end there: the target keeps exactly those.
func (n *Network) CutAfter(q fabric.QP, bytes uint64) error {
	return n.engine.Inject(q.Number(), nic.Fault{Cut: true, CutAfter: bytes})
}

// Hold stops q's requests until Release.
func (n *Network) Hold(q fabric.QP) error { return n.engine.Inject(q.Number(), nic.Fault{Hold: true}) }

// Release ends all faults of q.
func (n *Network) Release(q fabric.QP) error { return n.engine.Inject(q.Number(), nic.Fault{}) }

// Delay holds each of q's requests back for d.
func (n *Network) Delay(q fabric.QP, d time.Duration) error {
	return n.engine.Inject(q.Number(), nic.Fault{Delay: d})
}

// Kill takes a device away as the death of its process does: its memory is out
// of reach, its connections break.
func (n *Network) Kill(d fabric.Device) error { return d.Close() }
