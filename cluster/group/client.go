package group

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
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
	reads   *reads
	pulses  *pulses
	watches []fabric.QP // the idle ones
	drives  []fabric.QP // to each replica, of fan-out
	out     fabric.QP   // to the first replica of a chain
	ack     fabric.QP   // from the last

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
	if c.reads, err = newReads(c.dom); err != nil {
		return err
	}
	if c.pulses, err = newPulses(c.dom); err != nil {
		return err
	}
	if c.watches, err = c.newQPs(); err != nil {
		return err
	}
	if s.Mode == FanOut {
		c.drives, err = c.newQPs()
		return err
	}
	if c.out, err = c.newQP(); err == nil {
		c.ack, err = c.newQP()
	}
	return err
}

// newQPs makes one for each replica.
func (c *client) newQPs() (qps []fabric.QP, err error) {
	for range c.offers {
		q, err := c.newQP()
		if err != nil {
			return nil, err
		}
		qps = append(qps, q)
	}
	return qps, nil
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
	for i, q := range c.drives {
		ends[q] = c.offers[i].Up
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
	j := Join{Offer: c.offers[i].ID, Index: i, Watch: c.watches[i].Endpoint(), Ack: c.reg.Info()}
	if c.spec.Mode == FanOut {
		j.Up = c.drives[i].Endpoint()
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

// found is the result map that came for an operation.
func (c *client) found(seq uint64) (found [MaxReplicas]uint64) {
	answer := c.mem.Bytes()[c.answerAt(seq):]
	for i := range c.spec.Replicas {
		found[i] = binary.LittleEndian.Uint64(answer[i*wordBytes:])
	}
	return found
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

// watching tells whose connection a queue pair is the idle one of; -1 is nobody's.
func (c *client) watching(number uint32) int { return find(c.watches, number) }

func find(qps []fabric.QP, number uint32) int {
	return slices.IndexFunc(qps, func(q fabric.QP) bool { return q.Number() == number })
}

// blame says in words whose connection ended.
func (c *client) blame(done fabric.Completion) error {
	at := max(c.watching(done.QP), find(c.drives, done.QP))
	if at < 0 && done.QP == c.out.Number() {
		at = 0
	} else if at < 0 {
		at = len(c.offers) - 1
	}
	return fmt.Errorf("the connection with %s ended: %v", c.who(at), done.Status)
}

// who names a replica.
func (c *client) who(i int) string {
	return fmt.Sprintf("replica %d of %d (%s)", i, len(c.offers), c.offers[i].Name)
}

// watched is told of a completion of replica i's idle connection.
func (c *client) watched(i int, done fabric.Completion) error {
	c.pulses.arrived(i, done.Op)
	switch done.Op {
	case fabric.OpRead:
		return c.reads.end(int(done.ID))
	case fabric.OpWrite:
		return nil
	}
	return fmt.Errorf("%s sent a message where none is due", c.who(i))
}

// close fences first, then frees.
func (c *client) close() error { return errors.Join(c.fence(), c.free()) }

// fence ends all connections. Whoever waits for completions is told; nothing lands any more.
func (c *client) fence() error { return c.dom.Close() }

// free gives the memory back.
func (c *client) free() (err error) {
	if c.mem != nil {
		err = c.mem.Close()
	}
	if c.reads != nil {
		err = errors.Join(err, c.reads.close())
	}
	if c.pulses != nil {
		err = errors.Join(err, c.pulses.close())
	}
	return err
}
