package driver

import (
	"fmt"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/nic"
	"github.com/ostrodb/ostro/fabric/ring"
)

type domain struct {
	device *Device
	id     uint32
}

func (d *domain) Close() error {
	_, _, err := d.device.call(nic.Request{Verb: nic.CloseDomain, Domain: d.id}, nil)
	if err != nil {
		return err
	}
	d.device.forget(d)
	return nil
}

func (d *domain) Register(m *fabric.Memory, access fabric.Access) (fabric.Region, error) {
	out, _, err := d.device.call(nic.Request{
		Verb: nic.Register, Domain: d.id, Offset: m.Offset(), Bytes: len(m.Bytes()), Access: access,
	}, m.File())
	return d.region(out, err)
}

func (d *domain) RegisterRing(q fabric.QP, access fabric.Access) (fabric.Region, error) {
	out, _, err := d.device.call(nic.Request{Verb: nic.RegisterRing, Domain: d.id, QP: q.Number(), Access: access}, nil)
	return d.region(out, err)
}

func (d *domain) region(out nic.Response, err error) (fabric.Region, error) {
	if err != nil {
		return nil, err
	}
	return &region{device: d.device, info: fabric.RegionInfo{Key: out.Key, Bytes: out.Bytes}, local: out.Local}, nil
}

type region struct {
	device *Device
	info   fabric.RegionInfo
	local  uint32
}

func (r *region) Info() fabric.RegionInfo { return r.info }

func (r *region) Piece(off uint64, n uint32) fabric.Piece {
	return fabric.Piece{Addr: off, Bytes: n, Key: r.local}
}

func (r *region) Revoke() error {
	_, _, err := r.device.call(nic.Request{Verb: nic.Revoke, Key: r.info.Key}, nil)
	return err
}

const defaultDepth = 128

func (d *domain) NewCQ(depth int) (fabric.CQ, error) {
	slots := uint64(0)
	if depth > 0 {
		slots = ring.Depth(depth, 0)
	}
	out, mem, err := d.device.call(nic.Request{Verb: nic.NewCQ, Domain: d.id, Depth: slots}, nil)
	if err != nil {
		return nil, err
	}
	c := &CQ{
		domain: d, number: out.Number, mem: mem, shared: ring.NewCompletions(mem.Bytes(), slots),
		spinner: ring.Spinner{Limit: spinFor, Yield: true},
	}
	d.device.mu.Lock()
	defer d.device.mu.Unlock()
	if d.device.live == nil {
		return nil, fabric.ErrClosed
	}
	d.device.live[c] = struct{}{}
	return c, nil
}

func (d *domain) NewQP(c fabric.QPConfig) (fabric.QP, error) {
	send, ok1 := c.SendCQ.(*CQ)
	recv, ok2 := c.RecvCQ.(*CQ)
	if !ok1 || !ok2 {
		return nil, fmt.Errorf("fabric: a queue pair needs two completion queues of its own device")
	}
	r := nic.Request{
		Verb: nic.NewQP, Domain: d.id, SendCQ: send.number, RecvCQ: recv.number, RNRWait: c.RNRWait, Repeat: c.Repeat,
		SendDepth: ring.Depth(c.SendDepth, defaultDepth), RecvDepth: ring.Depth(c.RecvDepth, defaultDepth),
	}
	out, mem, err := d.device.call(r, nil)
	if err != nil {
		return nil, err
	}
	q := &QP{
		domain: d, number: out.Number, bell: out.Bell, endpoint: *out.Endpoint, mem: mem, repeats: c.Repeat,
		shared: ring.NewPair(mem.Bytes(), r.SendDepth, r.RecvDepth),
	}
	d.device.mu.Lock()
	defer d.device.mu.Unlock()
	if d.device.qps == nil {
		return nil, fabric.ErrClosed
	}
	d.device.qps[q] = struct{}{}
	return q, nil
}
