package group_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/ostrodb/ostro/cluster/group"
)

func TestEachPrimitiveActsOnAllReplicasOfGroupsOfOneToSeven(t *testing.T) {
	everywhere(t, func(t *testing.T, provider string, mode group.Mode) {
		for n := 1; n <= group.MaxReplicas; n++ {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				s := newScene(t, provider, group.Spec{Mode: mode, Window: 4, MaxWrite: 4096}, n)
				ctx := s.ctx()
				s.ok(s.g.Write(ctx, 100, []byte("to all of you")))
				s.want(100, []byte("to all of you"))
				s.ok(s.g.Copy(ctx, 5000, 100, 13))
				s.want(5000, []byte("to all of you"))
				s.ok(s.g.Flush(ctx, 0, memoryBytes))
				s.testCAS()
				for off, p := range []func(...group.Flag) (*group.Pending, error){
					func(f ...group.Flag) (*group.Pending, error) { return s.g.Write(ctx, 0, []byte{7}, f...) },
					func(f ...group.Flag) (*group.Pending, error) { return s.g.Copy(ctx, 1, 0, 1, f...) },
					func(f ...group.Flag) (*group.Pending, error) { return s.g.Copy(ctx, 2, 1, 1, f...) },
				} {
					s.ok(p(group.Durable))
					s.want(off, []byte{7})
				}
			})
		}
	})
}

// testCAS takes a lock on all replicas but the first, finds it taken by some when it
// wants all, and undoes what it got.
func (s *scene) testCAS() {
	s.t.Helper()
	const lock = 512
	ctx, n := s.ctx(), s.g.Replicas()
	others := group.First(n) &^ 1
	if r := s.ok(s.g.CAS(ctx, lock, 0, 9, others)); r.Swapped(0) != others {
		s.t.Fatalf("replicas %07b swapped, want %07b", r.Swapped(0), others)
	}
	r := s.ok(s.g.CAS(ctx, lock, 0, 5, group.First(n), group.Durable))
	if r.Swapped(0) != 1 {
		s.t.Fatalf("replicas %07b swapped, want the first", r.Swapped(0))
	}
	for i := range n {
		want := map[bool]uint64{true: 0, false: 9}[i == 0]
		if r.Found[i] != want {
			s.t.Fatalf("replica %d found %d, want %d", i, r.Found[i], want)
		}
	}
	s.ok(s.g.Undo(ctx, lock, 0, 5, r))
	for i := range n {
		want := map[bool]uint64{true: 0, false: 9}[i == 0]
		if got := s.word(i, lock); got != want {
			s.t.Fatalf("replica %d has %d after the undo, want %d", i, got, want)
		}
	}
}

func TestManyOperationsInFlightTakeEffectInOrder(t *testing.T) {
	everywhere(t, func(t *testing.T, provider string, mode group.Mode) {
		s := newScene(t, provider, group.Spec{Mode: mode, Window: 16, Slots: 16, MaxWrite: 1024}, 3)
		ctx := s.ctx()
		const rounds, places = 200, 8000
		var last []*group.Pending
		for i := range byte(rounds) { // Each overwrites what the one before still has to copy.
			w := must(s.g.Write(ctx, 0, bytes.Repeat([]byte{i}, 40)))(t)
			c := must(s.g.Copy(ctx, places+uint64(i)*40, 0, 40))(t)
			last = append(last, w, c, must(s.g.CAS(ctx, 64, uint64(i), uint64(i)+1, 0b101))(t))
		}
		for i, p := range last {
			r := must(p.Wait(ctx))(t)
			if i%3 == 2 && r.Swapped(uint64(i/3)) != 0b101 {
				t.Fatalf("gCAS %d found %v", i/3, r.Found)
			}
		}
		for i := range byte(rounds) {
			s.want(places+int(i)*40, bytes.Repeat([]byte{i}, 40))
		}
		if a, b := s.word(2, 64), s.word(1, 64); a != rounds || b != 0 {
			t.Fatalf("the words are %d and %d", a, b)
		}
	})
}

func TestGoroutinesMayShareAGroup(t *testing.T) {
	everywhere(t, func(t *testing.T, provider string, mode group.Mode) {
		s := newScene(t, provider, group.Spec{Mode: mode, Window: 5, MaxWrite: 64}, 2)
		ctx, ended := s.ctx(), make(chan error)
		for i := range uint64(8) {
			go func() {
				for round := range uint64(40) {
					p, err := s.g.CAS(ctx, i*8, round, round+1, 0b11)
					if err == nil {
						_, err = p.Wait(ctx)
					}
					if err != nil {
						ended <- err
						return
					}
				}
				ended <- nil
			}()
		}
		for range 8 {
			check(t, <-ended)
		}
		for i := range 8 {
			if a, b := s.word(0, i*8), s.word(1, i*8); a != 40 || b != 40 {
				t.Fatalf("words %d are %d and %d", i, a, b)
			}
		}
	})
}
