// Package tcp is the fabric between machines: engines that land bytes from
// sockets at their final address. The target's program takes no part.
//
// The engine may be inside this process (Open), or in a NIC process that listens
// (`ostro nic --listen`); programs attached to that one by package shm reach
// other machines through it.
package tcp

import (
	"errors"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/driver"
	"github.com/ostrodb/ostro/fabric/nic"
)

// Caps is what the provider can do. A watcher may see the bytes of one read in
// any order, but for the last ones.
var Caps = fabric.Caps{Wait: true, Rings: true, Persist: true, Counts: true}

// Config says where an engine listens.
type Config struct {
	Listen    string // host:port; port 0 takes a free one
	Advertise string // what peers are told; default: where it listens
	Secret    []byte // shared by all NICs that talk to each other
	NIC       nic.Config
}

// Host is an engine in this process that other machines reach.
type Host struct {
	engine *nic.Engine
	board  *nic.Switchboard
}

// Open starts an engine that listens.
func Open(c Config) (*Host, error) {
	e, err := nic.New(c.NIC)
	if err != nil {
		return nil, err
	}
	b, err := e.Listen(c.Listen, c.Advertise, c.Secret)
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return &Host{e, b}, nil
}

// Addr is where the host listens.
func (h *Host) Addr() string { return h.board.Addr() }

// Device opens a device with a peer name.
func (h *Host) Device(name string) (*driver.Device, error) {
	c, err := driver.Local(h.engine, name)
	if err != nil {
		return nil, err
	}
	return driver.New(name, Caps, c), nil
}

// Close ends the engine and all its connections.
func (h *Host) Close() error { return errors.Join(h.board.Close(), h.engine.Close()) }
