//go:build verbs

// Package verbs is the fabric on RDMA hardware, through libibverbs. It is built
// with the tag "verbs" and needs cgo.
//
// The hardware moves bytes and keeps keys. What it does not do, a TCP connection
// beside each direction of a queue pair does: peers prove that they know the
// secret and name each other, and learn of the other one's end, for hardware
// leaves a peer in the dark whose partner failed or closed.
//
// There is no WAIT and there are no registered rings: group operations fan out
// from the client. FLUSH is a READ behind the writes. Refusals are not counted.
package verbs

// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"unsafe"

	"github.com/ostrodb/ostro/fabric"
)

// Caps is what the provider can do.
var Caps = fabric.Caps{SurvivesStop: true}

// Config says which hardware to use and where peers call.
type Config struct {
	Device string // such as mlx5_0; empty is the first
	Listen string // host:port for the connections beside queue pairs
	Secret []byte
	Name   string // the device's peer name
}

// Device is an RDMA device. One lock guards all that is made with it.
type Device struct {
	conf     Config
	listener net.Listener
	wait     sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	context  *C.struct_ibv_context
	mtu      C.int
	gid      fabric.NICID
	gidIndex C.int
	scratch  *fabric.Memory // FLUSH reads into it
	domains  map[*domain]struct{}
	qps      map[uint32]*QP
	banned   map[string]bool
	metrics  fabric.Metrics
}

// Open opens a device and listens for peers.
func Open(c Config) (*Device, error) {
	d := &Device{conf: c, domains: map[*domain]struct{}{}, qps: map[uint32]*QP{}, banned: map[string]bool{}}
	if err := d.openDevice(); err != nil {
		return nil, err
	}
	var err error
	if d.scratch, err = fabric.NewMemory(1); err == nil {
		d.listener, err = net.Listen("tcp", c.Listen)
	}
	if err != nil {
		C.ibv_close_device(d.context)
		return nil, fmt.Errorf("verbs: %w", err)
	}
	d.wait.Go(d.accept)
	return d, nil
}

func (d *Device) openDevice() error {
	var n C.int
	list := C.ibv_get_device_list(&n)
	if list == nil || n == 0 {
		return errors.New("verbs: this machine has no RDMA device")
	}
	defer C.ibv_free_device_list(list)
	for _, dev := range unsafe.Slice(list, int(n)) {
		if name := C.GoString(C.ibv_get_device_name(dev)); d.conf.Device != "" && name != d.conf.Device {
			continue
		}
		if d.context = C.ibv_open_device(dev); d.context == nil {
			return errors.New("verbs: the RDMA device could not be opened")
		}
		return d.findAddress()
	}
	return fmt.Errorf("verbs: this machine has no RDMA device %q", d.conf.Device)
}

// findAddress takes the port's first IPv4-mapped address.
func (d *Device) findAddress() error {
	var port C.struct_ibv_port_attr
	if err := failed("query the port", C.port_of(d.context, &port)); err != nil {
		return err
	}
	d.mtu = C.int(port.active_mtu)
	for i := range C.int(port.gid_tbl_len) {
		var gid C.union_ibv_gid
		if C.ibv_query_gid(d.context, 1, i, &gid) != 0 {
			continue
		}
		if b := *(*fabric.NICID)(unsafe.Pointer(&gid)); b[10] == 0xff && b[11] == 0xff {
			d.gid, d.gidIndex = b, i
			return nil
		}
	}
	return errors.New("verbs: the RDMA device has no IPv4 address")
}

// Name is the device's peer name.
func (d *Device) Name() string { return d.conf.Name }

// Caps tells what the provider can do.
func (d *Device) Caps() fabric.Caps { return Caps }

// Metrics tells what the device knows; the hardware counts no refusals.
func (d *Device) Metrics() (fabric.Metrics, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return fabric.Metrics{}, fabric.ErrClosed
	}
	return d.metrics, nil
}

// Ban breaks all connections with a peer for good.
func (d *Device) Ban(peer string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return fabric.ErrClosed
	}
	d.banned[peer] = true
	for _, q := range d.qps {
		if q.wants && q.want.Peer == peer {
			q.fence()
		}
	}
	return nil
}

// Close closes all that was made with the device.
func (d *Device) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	for dom := range d.domains {
		dom.close()
	}
	d.closed = true
	code := C.ibv_close_device(d.context)
	d.mu.Unlock()
	err := d.listener.Close()
	d.wait.Wait()
	return errors.Join(err, failed("close the device", code), d.scratch.Close())
}
