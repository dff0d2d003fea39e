package bench

import (
	"context"
	"fmt"
	"slices"

	"github.com/ostrodb/ostro/bench/workload"
	"github.com/ostrodb/ostro/cluster/view"
)

// mostRanges is into how many ranges a node's ownership is split at most.
const mostRanges = 2048

// ownershipCell is one way to check with so many ranges.
type ownershipCell struct {
	Ranges int         `json:"ranges"`
	Check  string      `json:"check"`
	Rounds []respRound `json:"rounds"`
}

// ownershipStage is a cluster that checks one way, and the load on its first node.
type ownershipStage struct {
	check  string
	on     *shadowCluster
	pieces []view.Ranges // of what the first node owned; those with odd numbers may be the other's
	away   view.Ranges   // that are
	load   shadowLoad
}

// measureOwnership is throughput against ranges: §3.5.5.4. Records lie where ownership never changes,
// so it is the same load on the same data however many ranges there are.
func (x *shadow) measureOwnership(ctx context.Context) error {
	var stages []*ownershipStage
	defer func() {
		for _, s := range stages {
			s.on.end()
		}
	}()
	for _, check := range []string{"views", "keys"} {
		s, err := x.ownershipStage(ctx, check)
		if err != nil {
			return err
		}
		stages = append(stages, s)
	}
	// Redis clients say no view: each command is looked up by its slot.
	resp := *stages[0]
	resp.check, resp.load.door = "redis clients", door{addr: resp.on.source.Redis}
	columns := []*ownershipStage{stages[0], stages[1], &resp}
	for _, n := range x.f.ranges {
		for _, s := range columns {
			x.out.Ownership = append(x.out.Ownership, ownershipCell{Ranges: n, Check: s.check})
		}
	}
	for round := range x.f.rounds {
		for i, n := range x.f.ranges {
			for _, s := range stages {
				x.p.begin("split ownership into %s, %s, round %d of %d", many(n, "range", "ranges"), s.check, round+1, x.f.rounds)
				if err := s.split(ctx, n); err != nil {
					return fmt.Errorf("split into %d: %w", n, err)
				}
			}
			for j, s := range columns {
				x.p.begin("%s, %s, round %d of %d", many(n, "range", "ranges"), s.check, round+1, x.f.rounds)
				r, err := s.load.round(ctx, &x.traces, x.f.duration)
				if err != nil {
					return fmt.Errorf("%d ranges, %s: %w", n, s.check, err)
				}
				c := &x.out.Ownership[i*len(columns)+j]
				c.Rounds = append(c.Rounds, r)
			}
		}
	}
	return nil
}

// ownershipStage starts a cluster and loads it.
func (x *shadow) ownershipStage(ctx context.Context, check string) (*ownershipStage, error) {
	x.p.begin("start a cluster that checks by %s", check)
	c, err := x.startPair(ctx, "ownership-check="+check)
	if err != nil {
		return nil, err
	}
	s := &ownershipStage{check: check, on: c, pieces: c.owned(c.source).Divide(2 * mostRanges)}
	var stays view.Ranges
	for i := 0; i < len(s.pieces); i += 2 {
		stays = append(stays, s.pieces[i]...)
	}
	mine := placesOf(view.RangesOf(stays...), uint64(x.f.records))
	x.p.begin("load %s records", x.f.records)
	if err := loadInto(ctx, x.p, c.source.Redis, mine, x.f.value); err != nil {
		c.end()
		return nil, err
	}
	s.load = shadowLoad{
		door: door{addr: c.source.Native, native: true}, pid: c.source.Pid, threads: 1, sessions: x.f.sessions * slices.Max(x.f.threads), batch: memoryBatch,
		mix: workload.YCSBC, value: x.f.value, dist: workload.Zipfian, records: uint64(x.f.records), ids: mine.ids,
	}
	return s, nil
}

// split has the first node own n ranges: what lies between them goes to the other one.
func (s *ownershipStage) split(ctx context.Context, n int) error {
	var wanted view.Ranges
	for i := range n - 1 {
		wanted = append(wanted, s.pieces[1+2*(i*(mostRanges-1)/(n-1))]...)
	}
	wanted = view.RangesOf(wanted...)
	if err := s.on.give(ctx, s.on.target, s.on.source, s.away.Subtract(wanted)); err != nil {
		return err
	}
	if err := s.on.give(ctx, s.on.source, s.on.target, wanted.Subtract(s.away)); err != nil {
		return err
	}
	s.away = wanted
	if got := s.on.owned(s.on.source); len(got) != n {
		return fmt.Errorf("%s owns %d ranges", s.on.source.ID, len(got))
	}
	return nil
}
