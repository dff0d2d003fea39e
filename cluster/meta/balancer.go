package meta

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
)

// BalancerMode is what a coordinator does about nodes that carry more than others.
type BalancerMode string

const (
	BalancerOff    BalancerMode = "off"     // nothing
	BalancerDryRun BalancerMode = "dry-run" // says what it would move
	BalancerAuto   BalancerMode = "auto"    // moves it
)

// Balancer is how a cluster is kept even. The zero value is that of one nobody has decided on: auto.
type Balancer struct {
	Mode BalancerMode `json:"mode,omitempty"`
	// Trigger is how many times the average the fullest node must carry; 0 is the default.
	Trigger float64 `json:"trigger,omitempty"`
	// Moves is how many ranges may be on their way at once for its sake; 0 is the default.
	Moves int `json:"moves,omitempty"`
	// MinOps is how many operations a second the fullest node must carry before load moves anything; 0 is the default.
	MinOps float64 `json:"minOps,omitempty"`
	// Every is how often nodes are asked what they carry; 0 is the default.
	Every time.Duration `json:"everyNanos,omitempty"`
	// HourBytes and HourMoves are the budget: what may move within an hour; 0 is the default.
	HourBytes int64 `json:"hourBytes,omitempty"`
	HourMoves int   `json:"hourMoves,omitempty"`
}

// Does is the mode that holds.
func (b Balancer) Does() BalancerMode {
	if b.Mode == "" {
		return BalancerAuto
	}
	return b.Mode
}

// How often nodes are asked, if nobody decides, and at most. A sample must be long enough to tell load from chance.
const (
	usualEvery = 2 * time.Second
	leastEvery = 100 * time.Millisecond
)

// Period is the time between two samples.
func (b Balancer) Period() time.Duration {
	if b.Every == 0 {
		return usualEvery
	}
	return b.Every
}

// Check says what is wrong with settings.
func (b Balancer) Check() error {
	switch b.Mode {
	case BalancerOff, BalancerDryRun, BalancerAuto, "":
	default:
		return fmt.Errorf("there is no mode %q: use auto, dry-run or off", b.Mode)
	}
	if !finite(b.Trigger) || !finite(b.MinOps) {
		return fmt.Errorf("a trigger of %v and %v operations a second are no bounds: use numbers, or 0 for the default", b.Trigger, b.MinOps)
	}
	if b.Trigger != 0 && b.Trigger < 1.05 {
		return fmt.Errorf("a trigger of %v would never let the cluster rest: use 1.05 or more, or 0 for the default", b.Trigger)
	}
	if b.Moves < 0 {
		return fmt.Errorf("%d moves at once are too few: use 1 or more, or 0 for the default", b.Moves)
	}
	if b.Every != 0 && b.Every < leastEvery {
		return fmt.Errorf("nodes asked every %s would have nothing to tell: use %s or more, or 0 for the default", b.Every, leastEvery)
	}
	if b.MinOps < 0 || b.HourBytes < 0 || b.HourMoves < 0 {
		return fmt.Errorf("%v operations, %d bytes or %d moves an hour are less than none: use 1 or more, or 0 for the default", b.MinOps, b.HourBytes, b.HourMoves)
	}
	return nil
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// Decision is what a balancer last thought, for people to read. Nothing is decided by it.
type Decision struct {
	At    time.Time    `json:"at"`
	By    view.NodeID  `json:"by"`
	Mode  BalancerMode `json:"mode"`
	Ratio float64      `json:"ratio"` // of the fullest node to the average
	Why   string       `json:"why"`
	Moves []string     `json:"moves,omitempty"` // what moves, or would
	Held  string       `json:"held,omitempty"`  // why no more moves, in one word
	// Nodes is what each node carries, operations a second or bytes.
	Nodes []NodeLoad `json:"nodes,omitempty"`
}

// NodeLoad is what a balancer saw of a node.
type NodeLoad struct {
	Node  view.NodeID `json:"node"`
	Ops   float64     `json:"ops"`
	Bytes float64     `json:"bytes"`
}

// Spent is what the balancer has moved since a moment, and what is on its way for its sake, of the migrations that are
// remembered.
func (s *Snapshot) Spent(since time.Time) (moves int, bytes int64) {
	for _, m := range s.Migrations {
		if m.By == ByBalancer && (!m.Stage.Ended() || m.Ended.After(since)) {
			moves++
			bytes += max(m.Bytes, s.Moves[m.ID].Bytes)
		}
	}
	return moves, bytes
}

// SetBalancer says how the cluster is kept even from now on.
func (s *Store) SetBalancer(ctx context.Context, b Balancer) error {
	if err := b.Check(); err != nil {
		return err
	}
	_, _, err := s.change(ctx, nil, func(e *edit) error { return e.put(keyBalancer, b) })
	return err
}

// Decided shows what this node's balancer thinks.
func (m *Member) Decided(ctx context.Context, d Decision) error {
	d.By = m.Node.ID
	return m.change(ctx, func(e *edit) error { return e.put(keyDecision, d) })
}

func (s *Snapshot) decodeBalancer(key string, value []byte) error {
	if key == keyBalancer {
		return json.Unmarshal(value, &s.Balancer)
	}
	return json.Unmarshal(value, &s.Decision)
}
