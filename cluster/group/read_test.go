package group_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/ostrodb/ostro/cluster/group"
)

func TestAReadSeesWhatHasEndedOnEachReplica(t *testing.T) {
	everywhere(t, func(t *testing.T, provider string, mode group.Mode) {
		s := newScene(t, provider, group.Spec{Mode: mode, Window: 8, MaxWrite: 64}, 3)
		ctx := s.ctx()
		s.ok(s.g.Write(ctx, 100, []byte("to all")))
		s.ok(s.g.CAS(ctx, 0, 0, 77, 0b010))
		for i := range 3 {
			got := make([]byte, 6)
			if check(t, s.g.Read(ctx, i, 100, got)); string(got) != "to all" {
				t.Fatalf("replica %d has %q", i, got)
			}
			word := make([]byte, 1)
			if check(t, s.g.Read(ctx, i, 0, word)); (word[0] == 77) != (i == 1) {
				t.Fatalf("replica %d has %d after a gCAS on replica 1", i, word[0])
			}
		}
	})
}

func TestManyLongReadsShareFewSlots(t *testing.T) {
	const bytesEach = 3 << 20 // More than all slots together have.
	for _, provider := range []string{"inproc", "shm", "tcp"} {
		t.Run(provider, func(t *testing.T) {
			s := prepareBytes(t, provider, 2, bytesEach)
			for i, m := range s.mems {
				for at := range m.Bytes() {
					m.Bytes()[at] = byte(at/4096 + at + i)
				}
			}
			s.open(group.Spec{Window: 8, MaxWrite: 64})
			var all sync.WaitGroup
			failed := make(chan error, 6)
			for n := range 6 {
				all.Go(func() {
					got, from := make([]byte, bytesEach-n), s.mems[n%2].Bytes()
					if err := s.g.Read(s.ctx(), n%2, uint64(n), got); err != nil {
						failed <- err
					} else if !bytes.Equal(got, from[n:]) {
						failed <- fmt.Errorf("reader %d has other bytes than the replica", n)
					}
				})
			}
			all.Wait()
			close(failed)
			for err := range failed {
				t.Fatal(err)
			}
		})
	}
}

func TestReadersThatGiveUpLeaveTheirSlotsToOthers(t *testing.T) {
	s := newScene(t, "shm", group.Spec{Window: 8, MaxWrite: 64}, 2)
	over, cancel := context.WithCancel(s.ctx())
	cancel()
	buf := make([]byte, memoryBytes)
	for range 100 {
		if err := s.g.Read(over, 0, 0, buf); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	check(t, s.g.Read(s.ctx(), 1, 0, buf))
}

func TestReadsThatMakeNoSenseAreRefused(t *testing.T) {
	s := newScene(t, "inproc", group.Spec{}, 2)
	for what, err := range map[string]error{
		"replica -1":  s.g.Read(s.ctx(), -1, 0, make([]byte, 1)),
		"replica 2":   s.g.Read(s.ctx(), 2, 0, make([]byte, 1)),
		"no bytes":    s.g.Read(s.ctx(), 0, 0, nil),
		"past":        s.g.Read(s.ctx(), 0, memoryBytes-1, make([]byte, 2)),
		"far outside": s.g.Read(s.ctx(), 0, ^uint64(0), make([]byte, 2)),
	} {
		if !errors.Is(err, group.ErrRefused) {
			t.Errorf("%s: %v", what, err)
		}
	}
	s.ok(s.g.Write(s.ctx(), 0, []byte("still whole")))
}

func TestReadsEndWithTheGroup(t *testing.T) {
	s := newScene(t, "tcp", group.Spec{Window: 8}, 2)
	ended := make(chan error, 4)
	for range cap(ended) {
		go func() {
			buf := make([]byte, memoryBytes)
			for {
				if err := s.g.Read(s.ctx(), 1, 0, buf); err != nil {
					ended <- err
					return
				}
			}
		}()
	}
	check(t, s.g.Read(s.ctx(), 0, 0, make([]byte, 8)))
	check(t, s.devs[1].Close())
	for range cap(ended) {
		if err := <-ended; !errors.Is(err, group.ErrBroken) {
			t.Fatalf("a read ended with %v", err)
		}
	}
}
