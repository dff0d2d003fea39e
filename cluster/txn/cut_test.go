package txn_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/ostrodb/ostro/cluster/group"
	"github.com/ostrodb/ostro/cluster/txn"
)

// tiny is a group for tests that make many.
var tiny = group.Spec{Window: 4, Slots: 8, MaxWrite: 64}

// A cut at every byte that a replica places, while a record is appended that goes
// around the end of the ring in several writes, and while it is executed.
func TestACutAtAnyByteLeavesAllOfARecordOrNothing(t *testing.T) {
	s := prepareSized(t, tiny, 1, 8<<10)
	applied, dropped, cut, step := 0, 0, uint64(0), uint64(1)
	if testing.Short() {
		step = 7
	}
	for ; ; cut += step {
		ended, whole := s.cutAt(t, cut)
		if ended {
			break
		}
		if whole {
			applied++
		} else {
			dropped++
		}
	}
	if applied == 0 || dropped == 0 {
		t.Fatalf("of %d cuts %d left the record and %d nothing: this tested nothing", cut, applied, dropped)
	}
}

// cutAt cuts what the replica places after some bytes. It tells whether all was over
// before that, and whether the record is there after recovery.
func (s *scene) cutAt(t *testing.T, cut uint64) (ended, whole bool) {
	t.Helper()
	for _, m := range s.mems {
		clear(m.Bytes())
	}
	ctx := context.Background()
	c := txn.Config{LogBytes: 256, Locks: 2}
	g := must(group.Open(ctx, s.client, s.spec, s.members()...))(t)
	l := must(txn.Initialize(ctx, g, c))(t)
	first, second := bytes.Repeat([]byte("a"), 80), bytes.Repeat([]byte("b"), 90)
	check(t, l.AppendWait(ctx, txn.Entry{Data: first}))
	must(l.ExecuteAndAdvance(ctx))(t)
	check(t, l.AppendWait(ctx, entry(400, "kept")))
	check(t, l.WrLock(ctx, 7, 1))

	check(t, s.net.CutAfter(loop(s.spies[0]), cut))
	err := l.AppendWait(ctx, txn.Entry{Offset: 10, Data: second[:30]}, txn.Entry{Offset: 300, Data: second[30:]})
	acknowledged := err == nil
	for n := 1; n > 0 && err == nil; {
		n, err = l.ExecuteAndAdvance(ctx)
	}
	ended = err == nil
	if err != nil && !errors.Is(err, group.ErrBroken) {
		t.Fatalf("cut at %d: %v", cut, err)
	}
	check(t, l.Close())
	check(t, g.Close())

	s.leave()
	g = must(group.Open(ctx, s.client, s.spec, s.members()...))(t)
	l, err = txn.Initialize(ctx, g, c)
	if err != nil {
		t.Fatalf("cut at %d: %v", cut, err)
	}
	defer s.leave()
	defer g.Close()
	defer l.Close()
	check(t, l.WrLock(ctx, 8, 1))
	without := make([]byte, 600)
	copy(without, first)
	copy(without[400:], "kept")
	with := bytes.Clone(without)
	copy(with[10:], second[:30])
	copy(with[300:], second[30:])
	data := s.mems[0].Bytes()[l.DataOffset():][:len(with)]
	whole = bytes.Equal(data, with)
	if !whole && !bytes.Equal(data, without) || acknowledged && !whole {
		t.Fatalf("cut at %d: acknowledged %v, and there is %q", cut, acknowledged, data)
	}
	return ended, whole
}
