package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/ostrodb/ostro/bench/workload"
	"github.com/ostrodb/ostro/cluster/group"
	"github.com/ostrodb/ostro/cluster/txn"
)

// hyperRound is one round of one case in one mode.
type hyperRound struct {
	Operations uint64           `json:"operations"`
	Seconds    float64          `json:"seconds"`
	Latency    workload.Summary `json:"latency"` // empty where throughput is measured
	ReplicaCPU time.Duration    `json:"replica_cpu_ns"`
	NICCPU     time.Duration    `json:"nic_cpu_ns"`
}

func measureHyper(ctx context.Context, p *progress, f hyperFlags) (*hyperOutcome, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	p.begin("start replicas, NICs and busy processes")
	s, err := newHyperScene(ctx, f)
	if err != nil {
		return nil, err
	}
	defer s.end()
	out := &hyperOutcome{
		Fabric: f.fabric, Modes: f.modes, BusyProcesses: f.busyProcesses(), Window: f.window, Slots: f.slots,
		NICsRealTime: s.nicsRealTime, ClientRealTime: s.clientRealTime,
	}
	for _, c := range f.cases() {
		cells := make([]hyperCell, len(f.modes))
		for i, mode := range f.modes {
			cells[i] = hyperCell{hyperCase: c, Mode: mode, all: workload.NewLatency()}
		}
		for round := range f.rounds {
			for i := range cells {
				p.begin("%s by %s, round %d of %d", c, cells[i].Mode, round+1, f.rounds)
				if err := s.round(ctx, p, &cells[i]); err != nil {
					return nil, fmt.Errorf("%s by %s: %w", c, cells[i].Mode, err)
				}
			}
		}
		for i := range cells {
			cells[i].sum()
		}
		out.Cells = append(out.Cells, cells...)
	}
	return out, nil
}

// round measures a case once, on a group of its own.
func (s *hyperScene) round(ctx context.Context, p *progress, cell *hyperCell) error {
	if cell.transactional() {
		if err := s.blank(ctx, cell.Replicas); err != nil {
			return err
		}
	}
	g, err := s.open(ctx, cell.spec(s.f, cell.Mode), cell.Replicas)
	if err != nil {
		return err
	}
	defer g.Close()
	d := &hyperDriver{g: g, c: cell.hyperCase, data: make([]byte, cell.Bytes), warm: s.f.ops}
	workload.FillValue(d.data, 0, 0)
	if err := d.warmUp(ctx); err != nil {
		return err
	}
	if d.log != nil {
		defer d.log.Close()
	}
	if cell.Load == contended {
		if err := s.busy.set(true); err != nil {
			return err
		}
		defer func() { _ = s.busy.set(false) }()
	}
	before, err := s.used(cell.Replicas)
	if err != nil {
		return err
	}
	runtime.GC() // Not in the round: the client's collector would be measured.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	began := time.Now()
	r := hyperRound{}
	if cell.Primitive == throughput {
		r.Operations, err = d.stream(ctx, s.f.window, s.f.duration)
	} else {
		l := workload.NewLatency()
		err = d.latencies(ctx, p, l, s.f.ops, s.f.duration)
		cell.all.Merge(l)
		r.Operations, r.Latency = l.Count(), l.Summary()
	}
	if err != nil {
		return err
	}
	r.Seconds = time.Since(began).Seconds()
	after, err := s.used(cell.Replicas)
	if err != nil {
		return err
	}
	r.ReplicaCPU, r.NICCPU = after.replicas-before.replicas, after.nics-before.nics
	cell.Rounds = append(cell.Rounds, r)
	return d.verify(ctx)
}

// hyperDriver issues the operations of a case. They go round the places of the first
// half of the memory; a gMEMCPY's sources lie in the other half.
type hyperDriver struct {
	g    *group.Group
	c    hyperCase
	log  *txn.Log // of transactions
	data []byte
	warm int    // operations before the clock starts, at most
	done uint64 // operations issued
}

// hyperPlaces is how many places of the memory are used in turn.
const hyperPlaces = 16

func (d *hyperDriver) place(op uint64) uint64 { return op % hyperPlaces * uint64(d.c.Bytes) }

// stamp makes the data that of one operation.
func (d *hyperDriver) stamp(op uint64) []byte {
	binary.LittleEndian.PutUint64(d.data, op)
	return d.data
}

// issue starts the next operation.
func (d *hyperDriver) issue(ctx context.Context) (*group.Pending, error) {
	op := d.done
	d.done++
	switch d.c.Primitive {
	case gCopy:
		return d.g.Copy(ctx, d.place(op), memoryBytes/2+d.place(op), uint64(d.c.Bytes))
	case gCAS:
		// One word counts the operations: each finds what the one before has left.
		return d.g.CAS(ctx, 0, op, op+1, group.First(d.c.Replicas))
	default:
		return d.g.Write(ctx, d.place(op), d.stamp(op))
	}
}

// one runs an operation to its end.
func (d *hyperDriver) one(ctx context.Context) error {
	if d.log != nil {
		return d.transaction(ctx)
	}
	p, err := d.issue(ctx)
	if err != nil {
		return err
	}
	result, err := p.Wait(ctx)
	if err != nil {
		return err
	}
	if all := group.First(d.c.Replicas); d.c.Primitive == gCAS && result.Swapped(d.done-1) != all {
		return fmt.Errorf("gCAS %d found %v", d.done, result.Found)
	}
	return nil
}

// verify reads from every replica what the last operation should have left there.
func (d *hyperDriver) verify(ctx context.Context) error {
	last := d.done - 1
	at, want := d.place(last), d.data
	switch d.c.Primitive {
	case gCAS:
		at, want = 0, binary.LittleEndian.AppendUint64(nil, d.done)
	case gCopy:
		d.stamp(last % hyperPlaces)
	}
	got := make([]byte, len(want))
	read := d.g.Read
	if d.log != nil {
		if err := d.log.Drain(ctx); err != nil {
			return err
		}
		read = d.log.Read
	}
	for i := range d.c.Replicas {
		if err := read(ctx, i, at, got); err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("replica %d lacks operation %d", i, last)
		}
	}
	return nil
}

// warmUpOps fill caches and page tables before the clock starts.
const warmUpOps = 200

func (d *hyperDriver) warmUp(ctx context.Context) error {
	if err := d.prepare(ctx); err != nil {
		return err
	}
	for range min(d.warm, warmUpOps) {
		if err := d.one(ctx); err != nil {
			return err
		}
	}
	return nil
}

// prepare clears what earlier rounds have left, and makes what the operations need.
func (d *hyperDriver) prepare(ctx context.Context) error {
	switch d.c.Primitive {
	case txnAppend, txnExecute:
		return d.openLog(ctx)
	case gCAS:
		return d.write(ctx, 0, make([]byte, 8))
	case gCopy:
		for i := range uint64(hyperPlaces) {
			if err := d.write(ctx, memoryBytes/2+d.place(i), d.stamp(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *hyperDriver) write(ctx context.Context, off uint64, data []byte) error {
	p, err := d.g.Write(ctx, off, data)
	if err != nil {
		return err
	}
	_, err = p.Wait(ctx)
	return err
}

// leastOps are needed to speak of a tail, if they come within patience rounds.
const (
	leastOps = 100
	patience = 4
)

// overdue tells whether a round has lasted long enough.
func overdue(took, limit time.Duration, ops int) bool {
	return took > limit && (ops >= leastOps || took > patience*limit)
}

// latencies runs operations one after the other.
func (d *hyperDriver) latencies(ctx context.Context, p *progress, l *workload.Latency, ops int, limit time.Duration) error {
	began := time.Now()
	last := began
	for i := range ops {
		if err := d.one(ctx); err != nil {
			return err
		}
		now := time.Now()
		l.Record(int64(now.Sub(last)), 1)
		if last = now; overdue(now.Sub(began), limit, i+1) {
			return nil
		}
		if i%64 == 0 {
			p.set(uint64(i), uint64(ops))
			last = time.Now()
		}
	}
	return nil
}

// stream keeps a window full of operations in flight and returns how many ended.
func (d *hyperDriver) stream(ctx context.Context, window int, limit time.Duration) (uint64, error) {
	flight := make([]*group.Pending, window)
	began, first := time.Now(), d.done
	for time.Since(began) < limit {
		at := d.done % uint64(window)
		if flight[at] != nil {
			if _, err := flight[at].Wait(ctx); err != nil {
				return 0, err
			}
		}
		p, err := d.issue(ctx)
		if err != nil {
			return 0, err
		}
		flight[at] = p
	}
	for _, p := range flight {
		if p == nil {
			continue
		}
		if _, err := p.Wait(ctx); err != nil {
			return 0, err
		}
	}
	return d.done - first, nil
}
