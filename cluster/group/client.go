package group

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/ostrodb/ostro/fabric"
)

// client is what the client's end of every mode has: memory for messages and
// answers, one completion queue, and a connection with each replica.
//
//	answers, a slot per operation │ messages, a slot per operation │ copies, one per replica (fan-out)
//
// A RECV that no one ever sends to lies in each queue pair: it is flushed when the
// connection ends, and so the client hears of the end at once.
type client struct {
	spec    Spec
	persist fabric.Flags
	offers  []Offer
	dom     fabric.Domain
	mem     *fabric.Memory
	reg     fabric.Region
	cq      fabric.CQ
	watches []fabric.QP
	out     fabric.QP // to the first replica of a chain
	ack     fabric.QP // from the last

	stopped atomic.Bool // nobody shall wait for room any more
}

func newClient(dev fabric.Device, s Spec, offers []Offer) (*client, error) {
	c := &client{spec: s, offers: offers}
	if dev.Caps().Persist {
		c.persist = fabric.Persist
	}
	var err error
	if c.dom, err = dev.NewDomain("group"); err != nil {
		return nil, fmt.Errorf("group: open the client's domain: %w", err)
	}
	if err := c.build(); err != nil {
		return nil, errors.Join(fmt.Errorf("group: build the client's end: %w", err), c.close())
	}
	return c, nil
}

func (c *client) build() (err error) {
	s := c.spec
	bytes := s.Window * (s.ackBytes() + s.stageBytes())
	if s.Mode == FanOut {
		bytes += s.Replicas * s.MaxWrite
	}
	if c.mem, err = fabric.NewMemory(bytes); err != nil {
		return err
	}
	if c.reg, err = c.dom.Register(c.mem, fabric.LocalWrite|fabric.RemoteWrite); err != nil {
		return err
	}
	if c.cq, err = c.dom.NewCQ(2*s.Window*s.Replicas + 64); err != nil {
		return err
	}
	for range c.offers {
		q, err := c.newQP()
		if err != nil {
			return err
		}
		c.watches = append(c.watches, q)
	}
	if s.Mode == FanOut {
		return nil
	}
	if c.out, err = c.newQP(); err == nil {
		c.ack, err = c.newQP()
	}
	return err
}

func (c *client) newQP() (fabric.QP, error) {
	q, err := c.dom.NewQP(fabric.QPConfig{
		SendCQ: c.cq, RecvCQ: c.cq, SendDepth: 4 * c.spec.Window, RecvDepth: 2*c.spec.Window + 1, RNRWait: c.spec.Patience,
	})
	if err != nil {
		return nil, err
	}
	return q, q.PostRecv(fabric.Recv(0))
}

// meet connects with the replicas, and them with each other.
func (c *client) meet(ctx context.Context, members []Member) (way, error) {
	ends := map[fabric.QP]fabric.Endpoint{}
	for i, q := range c.watches {
		ends[q] = c.offers[i].Watch
	}
	var w way = &fanOut{client: c}
	if c.spec.Mode != FanOut {
		ends[c.out], ends[c.ack] = c.offers[0].Up, c.offers[len(c.offers)-1].Down
		w = &line{client: c}
		for range c.spec.Window {
			if err := c.ack.PostRecv(fabric.Recv(0)); err != nil {
				return nil, err
			}
		}
	}
	for q, end := range ends {
		if err := q.Connect(end); err != nil {
			return nil, fmt.Errorf("group: connect with %s: %w", end.Peer, err)
		}
	}
	for i, m := range members {
		if err := m.Join(ctx, c.join(i)); err != nil {
			return nil, fmt.Errorf("group: replica %d joins: %w", i, err)
		}
	}
	for q, end := range ends {
		if err := q.Ready(ctx); err != nil {
			return nil, fmt.Errorf("group: connect with %s: %w", end.Peer, err)
		}
	}
	return w, nil
}

// join tells replica i who its neighbours are.
func (c *client) join(i int) Join {
	j := Join{Index: i, Watch: c.watches[i].Endpoint(), Ack: c.reg.Info()}
	if c.spec.Mode == FanOut {
		return j
	}
	j.Up, j.Down = c.out.Endpoint(), c.ack.Endpoint()
	if i > 0 {
		j.Up = c.offers[i-1].Down
	}
	if i < len(c.offers)-1 {
		j.Down = c.offers[i+1].Up
	}
	return j
}

// answerAt and messageAt are where the slots of an operation lie.
func (c *client) answerAt(seq uint64) uint64 {
	return seq % uint64(c.spec.Window) * uint64(c.spec.ackBytes())
}

func (c *client) messageAt(seq uint64) uint64 {
	return uint64(c.spec.Window*c.spec.ackBytes()) + seq%uint64(c.spec.Window)*uint64(c.spec.stageBytes())
}

// post waits for room: an operation may be over before its requests have left the queue.
func (c *client) post(q fabric.QP, batch ...fabric.WR) error {
	for {
		err := q.Post(batch...)
		if !errors.Is(err, fabric.ErrFull) {
			return err
		}
		if c.stopped.Load() || q.State() != fabric.Ready {
			return fabric.ErrBroken
		}
		runtime.Gosched()
	}
}

// each hands every completion to take until something fails.
func (c *client) each(ctx context.Context, take func(fabric.Completion) error) error {
	defer c.stopped.Store(true)
	var batch [64]fabric.Completion
	for {
		n := c.cq.Poll(batch[:])
		if n == 0 {
			if err := c.cq.Wait(ctx); err != nil {
				return err
			}
		}
		for _, done := range batch[:n] {
			if done.Status != fabric.OK {
				return c.blame(done)
			}
			if err := take(done); err != nil {
				return err
			}
		}
		runtime.Gosched() // Waiting polls first; whoever waits for this operation goes before that.
	}
}

// blame says in words whose connection ended.
func (c *client) blame(done fabric.Completion) error {
	at := -1
	for i, q := range c.watches {
		if q.Number() == done.QP {
			at = i
		}
	}
	switch {
	case at >= 0:
	case done.QP == c.out.Number():
		at = 0
	default:
		at = len(c.offers) - 1
	}
	return fmt.Errorf("the connection with replica %d of %d (%s) ended: %v", at, len(c.offers), c.offers[at].Name, done.Status)
}

func (c *client) close() error {
	err := c.dom.Close()
	if c.mem != nil {
		err = errors.Join(err, c.mem.Close())
	}
	return err
}
