package txn_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostrodb/ostro/cluster/group"
	"github.com/ostrodb/ostro/cluster/txn"
	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/fabrictest"
	"github.com/ostrodb/ostro/fabric/inproc"
	"github.com/ostrodb/ostro/fabric/nic"
)

var (
	seeds   = flag.Int("seeds", 0, "how many simulations to run; default 120, or 20 with -short")
	oneSeed = flag.Uint64("seed", 0, "run the simulation of this seed only")
)

// Random transactions while connections are cut at random bytes, replicas and clients
// die, come back with old memory or none, also in the middle of recovery. After each
// recovery all replicas have the same, which is all that was acknowledged and of
// the rest a prefix, whole records only; and no lock is held.
func TestNothingAcknowledgedIsLostWhateverDies(t *testing.T) {
	if *oneSeed != 0 {
		if err := simulate(*oneSeed); err != nil {
			t.Fatalf("seed %d: %v", *oneSeed, err)
		}
		return
	}
	n := *seeds
	if n == 0 {
		if n = 120; testing.Short() {
			n = 20
		}
	}
	base, next := rand.Uint64N(1<<40), atomic.Int64{}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(n) && !t.Failed(); i = next.Add(1) {
				if err := simulate(base + uint64(i)); err != nil {
					t.Errorf("go test ./cluster/txn -run WhateverDies -seed %d: %v", base+uint64(i), err)
				}
			}
		})
	}
	wg.Wait()
}

const simBytes = 8 << 10

// world is one simulation.
type world struct {
	*rand.Rand
	ctx     context.Context
	net     *inproc.Network
	conf    txn.Config
	spec    group.Spec
	places  []*place
	born    int      // devices so far
	current []int    // places that have everything acknowledged
	base    []byte   // the data, as it was found last
	records [][]byte // the data after each record appended since
	acked   int      // how many of those are acknowledged
}

// place is where a replica lives, again and again.
type place struct {
	mem     *fabric.Memory
	spy     *fabrictest.Spy
	replica *group.Replica
	dying   chan struct{} // closed when it is dead
}

func simulate(seed uint64) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	w := &world{Rand: rand.New(rand.NewPCG(seed, 1)), ctx: ctx}
	if w.net, err = inproc.New(nic.Config{}); err != nil {
		return err
	}
	defer w.net.Close()
	w.conf = txn.Config{LogBytes: 256 << w.IntN(3), Locks: 3, Batch: 1 + w.IntN(4)}
	w.spec = group.Spec{Window: 2 + w.IntN(6), MaxWrite: 64 << w.IntN(3)}
	if w.IntN(6) == 0 {
		w.spec.Mode = group.FanOut
	}
	defer func() {
		for _, p := range w.places {
			err = errors.Join(err, p.spy.Close(), p.mem.Close())
		}
	}()
	for i := range 1 + w.IntN(4) {
		p := &place{}
		if p.mem, err = fabric.NewMemory(simBytes); err != nil {
			return err
		}
		w.places, w.current = append(w.places, p), append(w.current, i)
		if err := w.settle(p); err != nil {
			return err
		}
	}
	for life := range 2 + w.IntN(5) {
		if err := w.live(); err != nil {
			return fmt.Errorf("life %d: %w", life, err)
		}
	}
	return nil
}

// settle starts a replica's program at a place.
func (w *world) settle(p *place) error {
	w.born++
	d, err := w.net.Device(fmt.Sprintf("device-%d", w.born))
	p.spy, p.dying = &fabrictest.Spy{Device: d}, nil
	p.replica = group.NewReplica(p.spy, p.mem)
	return err
}

// live is one client's life: recovery, perhaps cut short, then transactions, then the end.
func (w *world) live() error {
	w.born++
	dev, err := w.net.Device(fmt.Sprintf("device-%d", w.born))
	if err != nil {
		return err
	}
	client := &fabrictest.Spy{Device: dev}
	defer client.Close()
	in := w.choose()
	var members []group.Member
	for _, i := range in {
		members = append(members, w.places[i].replica)
	}
	g, err := group.Open(w.ctx, client, w.spec, members...)
	if err != nil {
		return err
	}
	defer w.part(in)
	defer g.Close()
	if w.IntN(3) == 0 {
		w.harm(in, client)
	}
	l, err := txn.Initialize(w.ctx, g, w.conf)
	if err != nil {
		if !errors.Is(err, group.ErrBroken) {
			return err
		}
		w.current = slices.DeleteFunc(w.current, func(i int) bool { return !slices.Contains(in, i) })
		return nil
	}
	defer l.Close()
	w.current = in
	if err := w.check(l, in); err != nil {
		if errors.Is(err, group.ErrBroken) {
			return nil // The harm was done only now; the next life checks.
		}
		return err
	}
	w.harm(in, client)
	w.transact(l)
	return nil
}

// choose says who is in the next group, in which order: at least one that is current. Others
// may have lost their memory. Until a group was formatted on all, all are in it.
func (w *world) choose() []int {
	in, formatted := []int{w.current[w.IntN(len(w.current))]}, w.base != nil
	for i, p := range w.places {
		if i == in[0] || formatted && w.IntN(4) == 0 {
			continue
		}
		if formatted && w.IntN(5) == 0 {
			clear(p.mem.Bytes())
			w.current = slices.DeleteFunc(w.current, func(c int) bool { return c == i })
		}
		in = append(in, i)
	}
	w.Shuffle(len(in), func(a, b int) { in[a], in[b] = in[b], in[a] })
	return in
}

// part ends a group for its replicas; some die.
func (w *world) part(in []int) {
	for _, i := range in {
		p := w.places[i]
		p.replica.Leave()
		p.spy.Forget()
		if p.dying != nil {
			<-p.dying
		}
		if p.dying != nil || w.IntN(4) == 0 {
			_ = p.spy.Close()
			_ = w.settle(p)
		}
	}
}

// harm makes a connection break after some bytes, or kills a replica at some time.
func (w *world) harm(in []int, client *fabrictest.Spy) {
	p := w.places[in[w.IntN(len(in))]]
	bytes := uint64(w.IntN(1 << (4 + w.IntN(10))))
	switch w.IntN(6) {
	case 0, 1, 2:
		_ = w.net.CutAfter(loop(p.spy), bytes)
	case 3:
		_ = w.net.CutAfter(oneOf(p.spy, w.IntN(8)), bytes)
	case 4:
		_ = w.net.CutAfter(oneOf(client, w.IntN(8)), bytes)
	case 5:
		if p.dying != nil {
			return
		}
		p.dying = make(chan struct{})
		go func(dying chan struct{}) {
			defer close(dying)
			_ = p.spy.Close()
		}(p.dying)
	}
}

// check compares all replicas with what must be there, and looks at the locks.
func (w *world) check(l *txn.Log, in []int) error {
	got := make([]byte, l.DataBytes())
	for n, i := range in {
		data := w.places[i].mem.Bytes()[l.DataOffset():]
		if n > 0 && !bytes.Equal(data, got) {
			return fmt.Errorf("replicas %d and %d differ", in[0], i)
		}
		copy(got, data)
	}
	if w.base == nil {
		w.base = make([]byte, len(got))
	}
	states := append([][]byte{w.base}, w.records...)
	at := slices.IndexFunc(states, func(s []byte) bool { return bytes.Equal(s, got) })
	if at < w.acked {
		return fmt.Errorf("recovered to state %d of %d, and %d were acknowledged", at, len(w.records), w.acked)
	}
	w.base, w.records, w.acked = got, nil, 0
	for lock := range l.Locks() {
		if err := errors.Join(l.WrLock(w.ctx, 1, lock), l.WrUnlock(w.ctx, 1, lock)); err != nil {
			return err
		}
	}
	return nil
}

// transact does random things until something breaks or it has done enough.
func (w *world) transact(l *txn.Log) {
	var flying []*txn.Pending
	for range w.IntN(40) {
		var err error
		switch w.IntN(8) {
		case 0, 1, 2, 3:
			var p *txn.Pending
			entries, after := w.record(l)
			p, err = l.Append(w.ctx, entries...)
			w.records, flying = append(w.records, after), append(flying, p)
		case 4:
			if len(flying) > 0 {
				err = flying[len(flying)-1].Wait(w.ctx)
			}
		case 5, 6:
			_, err = l.ExecuteAndAdvance(w.ctx)
		case 7:
			err = w.lock(l)
		}
		if err != nil {
			break
		}
	}
	leave := w.IntN(2) == 0 // The client dies with operations in flight.
	if leave {
		_ = l.Group().Close()
	}
	for i, p := range flying {
		if p != nil && p.Wait(w.ctx) == nil {
			w.acked = i + 1
		}
	}
}

// lock leaves locks held, if nobody holds them.
func (w *world) lock(l *txn.Log) error {
	brief, cancel := context.WithCancel(w.ctx)
	cancel()
	var err error
	if lock := w.IntN(3); w.IntN(2) == 0 {
		err = l.WrLock(brief, l.NewOwner(), lock)
	} else {
		err = l.RdLock(brief, 0, lock)
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// record is random entries, and the data after them.
func (w *world) record(l *txn.Log) (entries []txn.Entry, after []byte) {
	last := w.base
	if n := len(w.records); n > 0 {
		last = w.records[n-1]
	}
	after = bytes.Clone(last)
	for range 1 + w.IntN(3) {
		data := make([]byte, 1+w.IntN(50))
		for i := range data {
			data[i] = byte(w.Uint32())
		}
		off := w.IntN(1 << (3 + w.IntN(8)))
		copy(after[off:], data)
		entries = append(entries, txn.Entry{Offset: uint64(off), Data: data})
	}
	return entries, after
}
