package txn

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/ostrodb/ostro/cluster/group"
)

// Initialize makes the memory of a group ready for transactions. Blank memory is
// formatted; its data area is taken to be zero, as new memory is. Memory that has
// been used is recovered, whatever has happened to its client and its replicas:
//
//   - replicas of the latest epoch are brought to the state of the one that got
//     farthest; all others, and blank ones, get a copy of everything;
//   - records that are whole are executed, others are dropped. What was
//     acknowledged is whole on every replica;
//   - locks are free, whoever held them.
//
// It may fail and be called again, with any of the replicas: a crash in its middle
// is a crash like others. One replica of the group as it was last in use must be there.
// The group is the caller's: he closes it after the log.
func Initialize(ctx context.Context, g *group.Group, c Config) (*Log, error) {
	if c.Batch <= 0 {
		c.Batch = 64
	}
	r := &recovery{group: g, conf: c}
	if err := r.run(ctx); err != nil {
		return nil, fmt.Errorf("txn: initialize: %w", err)
	}
	return newLog(g, r.layout, c, r.epoch, r.end), nil
}

// recovery brings the replicas of a group to one state. Its steps, each of which a
// crash may cut:
//
//	inspect   who is there, and of which epoch
//	shut      replicas' own readers are kept out
//	scan      how far each current replica's log is whole
//	exclude   the others say that they are incomplete
//	level     current replicas get the records that some of them lack
//	raise     a new epoch, first as next on all of them, then as theirs
//	redo      every record from the least head on is executed, heads move to the end and leap
//	copy      the rest get everything, and are members only then
//	open      locks are free, readers may read
type recovery struct {
	group  *group.Group
	conf   Config
	layout layout
	epoch  uint64
	latest uint64 // epoch that anybody has heard of
	end    uint64

	replicas   []*replica
	far, least *replica  // with the longest log, with the least head
	others     group.Map // not current
	records    [][]move  // from the least head on
}

// replica is what recovery knows of one.
type replica struct {
	index   int
	control control
	current bool   // has everything that was acknowledged
	log     []byte // its valid records, from its head on
}

func (r *replica) end() uint64    { return r.control.head + uint64(len(r.log)) }
func (r *replica) one() group.Map { return group.Map(1) << r.index }

func (r *recovery) run(ctx context.Context) error {
	if err := r.settle(ctx); err != nil {
		return err
	}
	if err := r.inspect(ctx); err != nil {
		return err
	}
	steps := []func(context.Context) error{r.shut, r.scan, r.exclude, r.level, r.raise, r.redo, r.copyToOthers, r.open}
	if len(r.current()) == 0 {
		steps = []func(context.Context) error{r.format, r.open}
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// settle waits for what an earlier log of the same group has in flight: reads would overtake it.
func (r *recovery) settle(ctx context.Context) error {
	p, err := r.group.CAS(ctx, magicAt, 0, 0, 0)
	if err != nil {
		return err
	}
	_, err = p.Wait(ctx)
	return err
}

func (r *recovery) current() (out []*replica) {
	for _, p := range r.replicas {
		if p.current {
			out = append(out, p)
		}
	}
	return out
}

func (r *recovery) all() group.Map { return group.First(r.group.Replicas()) }

// swapAll is a durable gCAS that must succeed on all replicas of a map.
func (r *recovery) swapAll(ctx context.Context, what string, off, old, new uint64, m group.Map) error {
	if m == 0 || old == new {
		return nil
	}
	p, err := r.group.CAS(ctx, off, old, new, m, group.Durable)
	if err != nil {
		return err
	}
	res, err := p.Wait(ctx)
	if err == nil && res.Swapped(old) != m {
		err = fmt.Errorf("%s is %x on replicas %07b, not %x: somebody else writes there", what, res.Found, m, old)
	}
	return err
}

// write is durable gWRITEs and their end.
func (r *recovery) write(ctx context.Context, off uint64, bytes []byte) error {
	p, err := writeAll(ctx, r.group, off, bytes)
	if err != nil || p == nil {
		return err
	}
	_, err = p.Wait(ctx)
	return err
}

// newEpoch is one that no replica has been in.
func newEpoch(before uint64) uint64 { return (before>>32+1)<<32 | uint64(rand.Uint32()) }

// format makes blank memory that of a group. The magic comes last.
func (r *recovery) format(ctx context.Context) (err error) {
	for _, p := range r.replicas {
		if p.control.magic == incomplete {
			return errors.New("every replica here is an incomplete copy; open the group with one that is complete")
		}
	}
	if r.layout, err = r.conf.plan(r.group.Bytes()); err != nil {
		return err
	}
	r.layout.group, r.epoch, r.end = rand.Uint64(), newEpoch(0), 0
	if err := r.write(ctx, wordBytes, r.layout.header()); err != nil {
		return err
	}
	if err := r.write(ctx, epochAt, control{epoch: r.epoch, next: r.epoch}.bytes()); err != nil {
		return err
	}
	return r.swapAll(ctx, "the magic", magicAt, 0, magic, r.all())
}

// open frees all locks and lets readers in.
func (r *recovery) open(ctx context.Context) error {
	if err := r.freeLocks(ctx); err != nil {
		return err
	}
	for _, p := range r.replicas {
		if err := r.swapAll(ctx, "the gate", gateAt, 0, r.group.Membership(p.index), p.one()); err != nil {
			return err
		}
	}
	return nil
}
