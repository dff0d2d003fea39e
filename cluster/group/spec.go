package group

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ostrodb/ostro/fabric"
)

// MaxReplicas is the length of the longest chain.
const MaxReplicas = 7

// Mode is how operations reach the replicas.
type Mode string

// Modes.
const (
	Chain        Mode = "chain"         // by the replicas' NICs
	NaiveEvents  Mode = "naive-events"  // by their programs, which sleep until a message comes
	NaivePolling Mode = "naive-polling" // by their programs, which never sleep
	FanOut       Mode = "fan-out"       // by the client
)

// Spec is what client and replicas of a group agree on. The client decides.
type Spec struct {
	Mode     Mode          // default Chain
	Replicas int           // set by Open
	Window   int           // operations in flight; default 64
	Slots    int           // operations that each replica has requests posted for; default twice the window
	MaxWrite int           // bytes of the longest gWRITE; default 64 KiB
	Patience time.Duration // how long a message waits for a naive replica without posted requests; default 10 s

	Heartbeat time.Duration // between two signs of life; default 500 ms, negative for none
	Misses    int           // how many may be missing before the group breaks; default 10
	Timeout   time.Duration // how long an operation may take before the group breaks; default 1 min, negative for ever
}

// Limits of a Spec, which replicas hold clients to: slots times bytes is memory of theirs.
const (
	maxSlots = 4096
	maxWrite = 1 << 20
	maxStage = 256 << 20

	minHeartbeat = time.Millisecond
)

// filled is the spec with its defaults.
func (s Spec) filled() Spec {
	if s.Mode == "" {
		s.Mode = Chain
	}
	if s.Window == 0 {
		s.Window = 64
	}
	if s.Slots == 0 {
		s.Slots = 2 * s.Window
	}
	if s.MaxWrite == 0 {
		s.MaxWrite = 64 << 10
	}
	if s.Heartbeat == 0 {
		s.Heartbeat = 500 * time.Millisecond
	}
	if s.Misses == 0 {
		s.Misses = 10
	}
	if s.Timeout == 0 {
		s.Timeout = time.Minute
	}
	return s
}

func (s Spec) check() error {
	switch s.Mode {
	case Chain, NaiveEvents, NaivePolling, FanOut:
	default:
		return fmt.Errorf("group: no mode is called %q; use chain, naive-events, naive-polling or fan-out", s.Mode)
	}
	switch {
	case s.Replicas < 1 || s.Replicas > MaxReplicas:
		return fmt.Errorf("group: a group has 1 to %d replicas, not %d", MaxReplicas, s.Replicas)
	case s.Window < 1 || s.Slots < s.Window || s.Slots > maxSlots:
		return fmt.Errorf("group: a window of %d and %d slots; want 1 <= window <= slots <= %d", s.Window, s.Slots, maxSlots)
	case s.MaxWrite < 1 || s.MaxWrite > maxWrite:
		return fmt.Errorf("group: MaxWrite of %d; want 1 to %d", s.MaxWrite, maxWrite)
	case s.Heartbeat >= 0 && s.Heartbeat < minHeartbeat || s.Heartbeat > 0 && s.Misses < 1:
		return fmt.Errorf("group: a heartbeat every %v, %d may be missing; want at least %v and 1", s.Heartbeat, s.Misses, minHeartbeat)
	case s.Timeout >= 0 && s.Timeout < minHeartbeat:
		return fmt.Errorf("group: a timeout of %v for an operation; want at least %v", s.Timeout, minHeartbeat)
	case s.Slots*s.stageBytes() > maxStage:
		return fmt.Errorf("group: %d slots for %d bytes each are more than %d bytes; use fewer or smaller ones", s.Slots, s.MaxWrite, maxStage)
	}
	return nil
}

// Offer is what a replica tells the client.
type Offer struct {
	ID        uint64            // random; Join names it
	Name      string            // of its device
	Data      fabric.RegionInfo // its memory
	Up, Down  fabric.Endpoint   // towards the client and away from it
	Watch     fabric.Endpoint   // for the client itself
	Pulse     fabric.RegionInfo // where its heartbeats go
	DataPiece uint64            // where its own requests find its memory
	Stage     uint64            // and its slots
}

// Join is what the client tells a replica.
type Join struct {
	Offer    uint64 // its ID
	Index    int
	Up, Down fabric.Endpoint
	Watch    fabric.Endpoint
	Ack      fabric.RegionInfo // of the client, for the last replica
}

// Member is a replica as the client reaches it: a *Replica in the same process, or
// something that carries the two calls to another one.
type Member interface {
	Offer(ctx context.Context, s Spec) (Offer, error)
	Join(ctx context.Context, j Join) error
}

// Open makes a group of replicas, first to last. All must have memory of one size.
func Open(ctx context.Context, dev fabric.Device, s Spec, members ...Member) (*Group, error) {
	s.Replicas = len(members)
	s = s.filled()
	if err := s.check(); err != nil {
		return nil, err
	}
	if c := dev.Caps(); s.Mode == Chain && !(c.Wait && c.Rings) {
		return nil, fmt.Errorf("group: %w: a chain needs WAIT and registered rings; use fan-out", fabric.ErrUnsupported)
	}
	offers, err := ask(ctx, s, members)
	if err != nil {
		return nil, err
	}
	c, err := newClient(dev, s, offers)
	if err != nil {
		return nil, err
	}
	w, err := c.meet(ctx, members)
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return newGroup(s, offers[0].Data.Bytes, c, w), nil
}

func ask(ctx context.Context, s Spec, members []Member) ([]Offer, error) {
	var offers []Offer
	for i, m := range members {
		o, err := m.Offer(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("group: ask replica %d: %w", i, err)
		}
		if i > 0 && o.Data.Bytes != offers[0].Data.Bytes {
			return nil, fmt.Errorf("group: replica %d has %d bytes, replica 0 has %d; give them the same", i, o.Data.Bytes, offers[0].Data.Bytes)
		}
		offers = append(offers, o)
	}
	return offers, nil
}
