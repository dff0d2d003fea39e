package group

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/fabric"
)

// Replica is a replica's end: memory that it lends to one group at a time.
type Replica struct {
	dev fabric.Device
	mem *fabric.Memory

	ended, nonsense atomic.Uint64 // see ReplicaMetrics

	mu    sync.Mutex
	part  *part
	count ReplicaMetrics
}

// NewReplica offers memory, all of it, through a device. The memory stays the caller's.
func NewReplica(dev fabric.Device, mem *fabric.Memory) *Replica {
	return &Replica{dev: dev, mem: mem}
}

// letGoWithin is how long the end of a group may take to reach a replica that is
// asked for an offer already.
const letGoWithin = 250 * time.Millisecond

// Offer prepares for a group as the client wants it. A replica that is in another
// group refuses with ErrBusy.
func (r *Replica) Offer(ctx context.Context, s Spec) (Offer, error) {
	o, err := r.offer(ctx, s)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.count.Refused++
	} else {
		r.count.Offers++
	}
	return o, err
}

func (r *Replica) offer(ctx context.Context, s Spec) (Offer, error) {
	if err := s.check(); err != nil {
		return Offer{}, err
	}
	r.awaitEnd(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.part != nil {
		if r.part.busy() {
			return Offer{}, fmt.Errorf("%w: the replica is in another group; let it leave first", ErrBusy)
		}
		r.part.leave()
	}
	p, err := newPart(r, s)
	if err != nil {
		return Offer{}, fmt.Errorf("group: prepare a replica: %w", err)
	}
	r.part = p
	return p.offer(r.dev.Name()), nil
}

// awaitEnd gives a group that is about to end a moment to do so.
func (r *Replica) awaitEnd(ctx context.Context) {
	r.mu.Lock()
	p := r.part
	busy := p != nil && p.busy() // Under the lock: another client may be joining it.
	r.mu.Unlock()
	if !busy {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, letGoWithin)
	defer cancel()
	select {
	case <-p.left:
	case <-ctx.Done():
	}
}

// Join connects with the neighbours and posts requests for all slots.
func (r *Replica) Join(_ context.Context, j Join) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.part == nil || r.part.id != j.Offer {
		r.count.Refused++
		return errors.New("group: the replica's offer is gone; another client may have asked since")
	}
	if r.part.joined {
		r.count.Refused++
		return errors.New("group: the replica has joined already")
	}
	if err := r.part.join(j); err != nil {
		r.part.leave()
		r.part = nil
		r.count.Refused++
		return err
	}
	r.count.Joins++
	return nil
}

// withdraw takes an offer back that was not joined.
func (r *Replica) withdraw(offer uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.part != nil && r.part.id == offer && !r.part.joined {
		r.part.leave()
		r.part = nil
	}
}

// ending is closed when the replica's group ends; then why tells the reason.
func (r *Replica) ending() (left <-chan struct{}, why func() error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.part == nil {
		return nil, nil
	}
	p := r.part
	return p.left, func() error { return p.why }
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

// Membership is the number of the replica's part in its group, as the client knows
// it, or 0 if it is in none. Alive is false when the client may have given up by now: no
// sign of life was due to come so late, by this program's clock, though it was
// held up itself.
func (r *Replica) Membership() (number uint64, alive bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.part == nil || !r.part.busy() {
		return 0, false
	}
	return r.part.id, r.part.alive()
}

// part is a replica's part in one group.
//
//	up ─ from the client or the replica before     down ─ to the next, or the client
//	watch ─ from the client itself; ends with it   events ─ what the program hears of
type part struct {
	replica *Replica
	id      uint64
	spec    Spec
	index   int
	mem     *fabric.Memory
	stage   *fabric.Memory
	pulse   *fabric.Memory // where the client's heartbeats land

	dom            fabric.Domain
	data, slots    fabric.Region
	beats          fabric.Region
	up, down       fabric.QP
	watch          fabric.QP
	events         fabric.CQ
	ack            fabric.RegionInfo
	nic            *chainNIC // of a chain only
	joined         bool      // run has started
	cancel         func()
	ears           sync.WaitGroup // who listens to heartbeats
	born           time.Time      // when it joined
	heard          atomic.Int64   // nanoseconds from then on; the client lived, or later
	left           chan struct{}
	why            error  // of the end; for who has seen left
	armed, execute uint64 // slots posted; messages executed (naive)
}

func newPart(r *Replica, s Spec) (*part, error) {
	p := &part{replica: r, id: 1 + rand.Uint64N(math.MaxUint64), spec: s, mem: r.mem, left: make(chan struct{})}
	var err error
	if p.dom, err = r.dev.NewDomain("group"); err != nil {
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
	if p.pulse, err = fabric.NewMemory(wordBytes); err != nil {
		return err
	}
	if p.beats, err = p.dom.Register(p.pulse, fabric.RemoteWrite); err != nil {
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
		Repeat: p.nic != nil,
	})
}

func (p *part) offer(name string) Offer {
	o := Offer{
		ID: p.id, Name: name, Up: p.up.Endpoint(), Data: p.data.Info(), Watch: p.watch.Endpoint(), Pulse: p.beats.Info(),
		DataPiece: p.data.Piece(0, 0).Addr, Stage: p.slots.Piece(0, 0).Addr,
	}
	if p.spec.Mode != FanOut {
		o.Down = p.down.Endpoint()
	}
	return o
}

func (p *part) join(j Join) error {
	if j.Index < 0 || j.Index >= p.spec.Replicas {
		return fmt.Errorf("group: cannot join as replica %d of %d now", j.Index, p.spec.Replicas)
	}
	p.index, p.ack = j.Index, j.Ack
	if p.spec.Mode != FanOut {
		for range p.spec.Slots {
			if err := p.arm(); err != nil {
				return err
			}
		}
		if err := errors.Join(p.startLoop(), p.down.Connect(j.Down)); err != nil {
			return err
		}
	}
	if err := errors.Join(p.up.Connect(j.Up), p.watch.Connect(j.Watch)); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	p.cancel, p.joined, p.born = func() { cancel(ErrClosed) }, true, time.Now()
	p.ears.Go(func() { p.listen(ctx, cancel) })
	go p.run(ctx)
	return nil
}

// run handles what the program hears of: in a chain, only the end. It ends with the group.
func (p *part) run(ctx context.Context) {
	defer close(p.left)
	p.why = p.serve(ctx)
	if ctx.Err() != nil {
		p.why = context.Cause(ctx)
	}
	if !errors.Is(p.why, ErrClosed) {
		p.replica.ended.Add(1)
	}
	p.cancel()
	p.ears.Wait()
	if errors.Is(p.why, ErrRefused) {
		p.replica.nonsense.Add(1)
	}
	_ = p.close()
}

func (p *part) serve(ctx context.Context) error {
	var batch [64]fabric.Completion
	for ctx.Err() == nil {
		n := p.events.Poll(batch[:])
		if n == 0 {
			if err := p.idle(ctx); err != nil {
				return err
			}
		}
		for _, done := range batch[:n] {
			if err := p.handle(done); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
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
	case p.spec.Mode == Chain || p.spec.Mode == FanOut:
		return fmt.Errorf("%w: a message where none is due", ErrRefused)
	case done.Op != fabric.OpRecv:
		return p.arm() // What passed a message on has completed: its slot is free.
	case done.QP != p.up.Number():
		return fmt.Errorf("%w: a message where none is due", ErrRefused)
	}
	return p.obey(done.Bytes)
}

// arm posts the requests of the next slot.
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
	if p.pulse != nil {
		err = errors.Join(err, p.pulse.Close())
	}
	return err
}
