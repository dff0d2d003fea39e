package group

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"

	"github.com/ostrodb/ostro/fabric"
)

// Replica is a replica's end: memory that it lends to one group at a time.
type Replica struct {
	dev fabric.Device
	mem *fabric.Memory

	mu   sync.Mutex
	part *part
}

// NewReplica offers memory, all of it, through a device. The memory stays the caller's.
func NewReplica(dev fabric.Device, mem *fabric.Memory) *Replica {
	return &Replica{dev: dev, mem: mem}
}

// Offer prepares for a group as the client wants it. A replica that has joined
// one and was not let go refuses.
func (r *Replica) Offer(_ context.Context, s Spec) (Offer, error) {
	if err := s.check(); err != nil {
		return Offer{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.part != nil {
		if r.part.busy() {
			return Offer{}, errors.New("group: the replica is in another group; let it leave first")
		}
		r.part.leave()
	}
	p, err := newPart(r.dev, r.mem, s)
	if err != nil {
		return Offer{}, fmt.Errorf("group: prepare a replica: %w", err)
	}
	r.part = p
	return p.offer(r.dev.Name()), nil
}

// Join connects with the neighbours and posts requests for all slots.
func (r *Replica) Join(_ context.Context, j Join) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.part == nil || r.part.id != j.Offer {
		return errors.New("group: the replica's offer is gone; another client may have asked since")
	}
	err := r.part.join(j)
	if err != nil {
		r.part.leave()
		r.part = nil
	}
	return err
}

// Leave lets the group go. When it returns, nothing lands in the memory any more.
func (r *Replica) Leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.part != nil {
		r.part.leave()
		r.part = nil
	}
}

// Left is closed when the replica's group has ended, for whatever reason; it is
// nil for a replica without one.
func (r *Replica) Left() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.part == nil {
		return nil
	}
	return r.part.left
}

// part is a replica's part in one group.
//
//	up ─ from the client or the replica before     down ─ to the next, or the client
//	watch ─ from the client itself; ends with it   events ─ what the program hears of
type part struct {
	id    uint64
	spec  Spec
	index int
	mem   *fabric.Memory
	stage *fabric.Memory

	dom            fabric.Domain
	data, slots    fabric.Region
	up, down       fabric.QP
	watch          fabric.QP
	events         fabric.CQ
	ack            fabric.RegionInfo
	nic            *chainNIC // of a chain only
	joined         bool      // run has started
	cancel         context.CancelFunc
	left           chan struct{}
	armed, execute uint64 // slots posted; messages executed (naive)
}

func newPart(dev fabric.Device, mem *fabric.Memory, s Spec) (*part, error) {
	p := &part{id: rand.Uint64(), spec: s, mem: mem, left: make(chan struct{})}
	var err error
	if p.dom, err = dev.NewDomain("group"); err != nil {
		return nil, err
	}
	if err := p.build(); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func (p *part) build() (err error) {
	if p.stage, err = fabric.NewMemory(p.spec.Slots * p.spec.stageBytes()); err != nil {
		return err
	}
	if p.data, err = p.dom.Register(p.mem, fabric.Everything); err != nil {
		return err
	}
	if p.slots, err = p.dom.Register(p.stage, fabric.LocalWrite); err != nil {
		return err
	}
	if p.events, err = p.dom.NewCQ(4*p.spec.Slots + 16); err != nil {
		return err
	}
	if p.watch, err = p.newQP(p.events, p.events); err != nil {
		return err
	}
	if err = p.watch.PostRecv(fabric.Recv(0)); err != nil {
		return err
	}
	arrived := p.events
	if p.spec.Mode == Chain {
		if p.nic, err = p.newNIC(); err != nil {
			return err
		}
		arrived = p.nic.arrived
	}
	if p.up, err = p.newQP(p.events, arrived); err != nil {
		return err
	}
	if p.spec.Mode == FanOut {
		return p.up.PostRecv(fabric.Recv(0))
	}
	if p.down, err = p.newQP(p.events, p.events); err != nil {
		return err
	}
	if p.spec.Mode == Chain {
		if p.nic.ring, err = p.dom.RegisterRing(p.down, fabric.RemoteWrite); err != nil {
			return err
		}
	}
	return p.down.PostRecv(fabric.Recv(0))
}

func (p *part) newQP(send, recv fabric.CQ) (fabric.QP, error) {
	return p.dom.NewQP(fabric.QPConfig{
		SendCQ: send, RecvCQ: recv, SendDepth: 4 * p.spec.Slots, RecvDepth: 2 * p.spec.Slots, RNRWait: p.spec.Patience,
	})
}

func (p *part) offer(name string) Offer {
	o := Offer{
		ID: p.id, Name: name, Up: p.up.Endpoint(), Data: p.data.Info(), Watch: p.watch.Endpoint(),
		DataPiece: p.data.Piece(0, 0).Addr, Stage: p.slots.Piece(0, 0).Addr,
	}
	if p.spec.Mode != FanOut {
		o.Down = p.down.Endpoint()
	}
	return o
}

func (p *part) join(j Join) error {
	if p.joined || j.Index < 0 || j.Index >= p.spec.Replicas {
		return fmt.Errorf("group: cannot join as replica %d of %d now", j.Index, p.spec.Replicas)
	}
	p.index, p.ack = j.Index, j.Ack
	if p.spec.Mode != FanOut {
		for range p.spec.Slots {
			if err := p.arm(); err != nil {
				return err
			}
		}
		if err := p.down.Connect(j.Down); err != nil {
			return err
		}
	}
	if err := errors.Join(p.up.Connect(j.Up), p.watch.Connect(j.Watch)); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel, p.joined = cancel, true
	go p.run(ctx)
	return nil
}

// run handles what the program hears of: in a chain, only that slots are free to be
// posted again. It ends with the group.
func (p *part) run(ctx context.Context) {
	defer close(p.left)
	defer func() { _ = p.close() }()
	var batch [64]fabric.Completion
	for ctx.Err() == nil {
		n := p.events.Poll(batch[:])
		if n == 0 && p.idle(ctx) != nil {
			return
		}
		for _, done := range batch[:n] {
			if p.handle(done) != nil {
				return
			}
		}
	}
}

func (p *part) idle(ctx context.Context) error {
	if p.spec.Mode == NaivePolling {
		if p.watch.State() >= fabric.Failed {
			return ErrBroken
		}
		runtime.Gosched()
		return nil
	}
	return p.events.Wait(ctx)
}

func (p *part) handle(done fabric.Completion) error {
	switch {
	case done.Status != fabric.OK:
		return fmt.Errorf("%w: %v", ErrBroken, done.Status)
	case done.Op != fabric.OpRecv:
		return p.refill()
	case p.spec.Mode == Chain || p.spec.Mode == FanOut || done.QP != p.up.Number():
		return fmt.Errorf("%w: a message where none is due", ErrBroken)
	}
	return p.obey(done.Bytes)
}

// refill posts the slots anew that a completion on down sets free.
func (p *part) refill() error {
	if p.spec.Mode != Chain {
		return p.arm()
	}
	for range p.spec.refill() {
		if err := p.arm(); err != nil {
			return err
		}
	}
	return nil
}

// arm posts the requests of the next slot. The slot's last life is over: what
// passed its message on has completed.
func (p *part) arm() error {
	slot := p.armed
	p.armed++
	if p.spec.Mode == Chain {
		return p.armNIC(slot)
	}
	return p.up.PostRecv(fabric.Recv(0, p.slots.Piece(p.stageAt(slot), uint32(p.spec.stageBytes()))))
}

func (p *part) stageAt(slot uint64) uint64 {
	return slot % uint64(p.spec.Slots) * uint64(p.spec.stageBytes())
}

// busy tells whether the part is in a group that has not ended.
func (p *part) busy() bool {
	select {
	case <-p.left:
		return false
	default:
		return p.joined
	}
}

func (p *part) leave() {
	if !p.joined {
		_ = p.close()
		close(p.left)
		return
	}
	p.cancel()
	<-p.left
}

// close fences first, then frees.
func (p *part) close() error {
	err := p.dom.Close()
	if p.stage != nil {
		err = errors.Join(err, p.stage.Close())
	}
	return err
}
