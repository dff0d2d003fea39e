package server

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/ostrodb/ostro/cluster/balance"
	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/migrate"
	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/background"
)

// The coordinator's node asks all nodes what their clients do, and has ranges moved from
// those that carry much more than others. See package balance for when and which.

const (
	// MethodLoad is the call that a node answers with a loadAnswer, with operations by
	// slot since the last such call, and with bytes by slot of records that it drew.
	MethodLoad = "node.load"
	// tellDecisionEvery is how often a decision is written down that is much like the last.
	tellDecisionEvery = 30 * time.Second
	// surveyed is how many records are drawn for an answer: some milliseconds' work.
	surveyed = 4096
)

// loadAnswer is the rest of what a node says of its load.
type loadAnswer struct {
	Bytes int64          `json:"bytes"`
	Links []balance.Link `json:"links,omitempty"`
	Hot   balance.Hot    `json:"hot"`
	// Used is how many bytes of the list of slots are of operations. The rest is of sizes.
	Used int `json:"used"`
}

// slotLoadBytes is a slot and its operations a second, or its size, as they go over the wire.
const slotLoadBytes = 2 + 4

func appendLoad(b []byte, all []float64) []byte {
	for slot, v := range all {
		if v > 0 {
			b = binary.LittleEndian.AppendUint16(b, uint16(slot))
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
		}
	}
	return b
}

// decodeLoad reads what appendLoad wrote.
func decodeLoad(b []byte) ([]float64, error) {
	all := make([]float64, balance.Slots)
	if len(b)%slotLoadBytes != 0 {
		return nil, fmt.Errorf("a load of %d bytes is no list of slots", len(b))
	}
	for ; len(b) > 0; b = b[slotLoadBytes:] {
		slot, v := binary.LittleEndian.Uint16(b), float64(math.Float32frombits(binary.LittleEndian.Uint32(b[2:])))
		if int(slot) >= balance.Slots || !(v >= 0) || math.IsInf(v, 1) {
			return nil, fmt.Errorf("a load says %v of slot %d", v, slot)
		}
		all[slot] = v
	}
	return all, nil
}

// of is the answer as it is compared, with its list of slots.
func (a *loadAnswer) of(n view.NodeID, b []byte) (balance.Load, error) {
	if a.Used < 0 || a.Used > len(b) {
		return balance.Load{}, fmt.Errorf("a load of %d bytes says that %d are of operations", len(b), a.Used)
	}
	ops, err := decodeLoad(b[:a.Used])
	sizes, sizesErr := decodeLoad(b[a.Used:])
	return balance.Load{Node: n, Ops: ops, Bytes: float64(a.Bytes), Sizes: sizes, Links: a.Links, Hot: a.Hot}, errors.Join(err, sizesErr)
}

// sizesBySlot is about how the bytes of a node are spread.
func sizesBySlot(s *migrate.Shelf) ([]float64, error) {
	sizes := make([]float64, balance.Slots)
	err := s.Survey(surveyed, func(p record.Place, bytes int64) { sizes[p.Slot()] += float64(bytes) })
	return sizes, err
}

// answerLoad tells what this node carries.
func (h *host) answerLoad(_ context.Context, _ *peer.Call) (any, []byte, error) {
	l, err := origin{h}.opened()
	if err != nil {
		return loadAnswer{}, nil, nil
	}
	sizes, err := sizesBySlot(l.shelf)
	if err != nil {
		return loadAnswer{}, nil, nil
	}
	r := l.heat.Take()
	list := appendLoad(nil, r.Ops)
	return loadAnswer{l.store.Metrics().LiveBytes, r.Links, r.Hot, len(list)}, appendLoad(list, sizes), nil
}

// balance keeps the cluster even, in whatever terms this node is the coordinator, for as long as
// it is a member.
func (l *life) balance(ctx context.Context, m *meta.Member) {
	b := balancer{life: l, member: m}
	for {
		background.Pause(ctx, l.cache.Snapshot().Balancer.Period())
		if ctx.Err() != nil {
			return
		}
		s := l.cache.Snapshot()
		if s.Coordinator != l.id.Node || s.Balancer.Does() == meta.BalancerOff {
			b.judge = nil
			continue
		}
		b.look(ctx, s)
	}
}

// balancer is what a coordinator has seen so far.
type balancer struct {
	*life
	member *meta.Member
	judge  *balance.Judge
	policy balance.Policy
	told   meta.Decision
}

// BalancerPolicy is what an operator wants, with defaults where nothing was said.
func BalancerPolicy(b meta.Balancer) balance.Policy {
	return balance.Policy{Trigger: b.Trigger, Moves: b.Moves, MinOps: b.MinOps, HourBytes: float64(b.HourBytes), HourMoves: b.HourMoves}.WithDefaults()
}

// look takes one sample, and acts on it.
func (b *balancer) look(ctx context.Context, s *meta.Snapshot) {
	b.balanced.follow(s)
	if policy := BalancerPolicy(s.Balancer); b.judge == nil || policy != b.policy {
		b.judge, b.policy = balance.NewJudge(policy), policy
	}
	loads, err := b.loads(ctx, s)
	if err != nil {
		b.judge = nil // What comes next would be of another span of time.
		return
	}
	moves, bytes := s.Spent(time.Now().Add(-time.Hour))
	plan := b.judge.Sample(s.Map, loads, unsettled(s), balance.Spent{Bytes: float64(bytes), Moves: moves})
	if len(plan.Moves) > 0 && s.Balancer.Does() != meta.BalancerAuto {
		plan.Held = balance.HeldDryRun
	}
	b.balanced.saw(plan)
	b.tell(ctx, s, plan, loads)
	if s.Balancer.Does() != meta.BalancerAuto {
		return
	}
	for _, m := range plan.Moves {
		made, err := b.meta.Migrate(ctx, meta.MigrationRequest{
			Source: m.From, Target: m.To, Ranges: m.Ranges, Options: meta.MigrationOptions{Sample: true}, By: meta.ByBalancer, Why: "balancer: " + m.Why,
		})
		if err != nil {
			b.log.Warn("the balancer could not move a range", "why", err, "from", m.From, "to", m.To)
			return
		}
		b.balanced.asked(made.ID)
		b.log.Info("the balancer moves a range", "migration", made.ID, "why", m.Why)
	}
}

// unsettled tells whether clients' load is about to be carried by others. A migration whose cold records only follow has
// its load where it will be, and may take long.
func unsettled(s *meta.Snapshot) bool {
	for _, m := range s.Migrations {
		if !m.Stage.Ended() && !follows(m) {
			return true
		}
	}
	return len(s.Recoveries)+len(s.Returns) > 0
}

// follows tells whether nothing but cold records of a migration moves.
func follows(m meta.Migration) bool { return m.Settling() && !m.Cancel }

// settles tells whether cold records follow to a node or from it.
func settles(s *meta.Snapshot, n view.NodeID) bool {
	return slices.ContainsFunc(s.Open(n), follows)
}

// loads asks all nodes at once. If one does not answer there is no sample.
func (b *balancer) loads(ctx context.Context, s *meta.Snapshot) ([]balance.Load, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	living := s.Living()
	loads, errs := make([]balance.Load, len(living)), make([]error, len(living))
	var all sync.WaitGroup
	for i, n := range living {
		all.Go(func() { loads[i], errs[i] = b.load(ctx, s, n) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return loads, nil
}

func (b *balancer) load(ctx context.Context, s *meta.Snapshot, n view.NodeID) (balance.Load, error) {
	var answer loadAnswer
	bulk, err := b.pool.Call(ctx, n, MethodLoad, nil, nil, &answer)
	if err != nil {
		return balance.Load{}, err
	}
	load, err := answer.of(n, bulk)
	load.Full, load.Settling = s.Draining(n), settles(s, n)
	return load, err
}

// tell writes a decision down when there is news.
func (b *balancer) tell(ctx context.Context, s *meta.Snapshot, p balance.Plan, loads []balance.Load) {
	d := meta.Decision{At: time.Now().UTC(), Mode: s.Balancer.Does(), Ratio: p.Ratio, Why: p.Why, Held: string(p.Held)}
	for _, m := range p.Moves {
		d.Moves = append(d.Moves, m.Why)
	}
	for i := range loads {
		d.Nodes = append(d.Nodes, meta.NodeLoad{Node: loads[i].Node, Ops: loads[i].Sum(), Bytes: loads[i].Bytes})
	}
	news := len(d.Moves) > 0 || d.Mode != b.told.Mode || d.Held != b.told.Held
	if !news && d.At.Sub(b.told.At) < tellDecisionEvery {
		return
	}
	if len(d.Moves) > 0 && d.Mode == meta.BalancerDryRun {
		b.log.Info("the balancer would move ranges; `ostro cluster balance auto` lets it", "why", d.Why)
	}
	if err := b.member.Decided(ctx, d); err == nil {
		b.told = d
	}
}
