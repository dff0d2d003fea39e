package txn_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ostrodb/ostro/cluster/txn"
)

func TestARecordIsInAllDataWhenItIsExecuted(t *testing.T) {
	s := newScene(t, small, txn.Config{LogBytes: 4096, Locks: 8}, 3)
	check(t, s.l.AppendWait(s.ctx(), entry(0, "one"), entry(100, "two"), entry(3, "more")))
	s.want(0, make([]byte, 200))
	if n, bytes := s.l.Unexecuted(); n != 1 || bytes == 0 {
		t.Fatalf("%d records of %d bytes are in the log", n, bytes)
	}
	if n := must(s.l.ExecuteAndAdvance(s.ctx()))(t); n != 1 {
		t.Fatalf("executed %d", n)
	}
	s.want(0, []byte("onemore\x00"))
	s.want(100, []byte("two\x00"))
	if n := must(s.l.ExecuteAndAdvance(s.ctx()))(t); n != 0 {
		t.Fatalf("executed %d of an empty log", n)
	}
}

func TestManyRecordsGoAroundTheRing(t *testing.T) {
	for _, background := range []bool{false, true} {
		t.Run(fmt.Sprintf("background %v", background), func(t *testing.T) {
			s := newScene(t, small, txn.Config{LogBytes: 4096, Locks: 8, Background: background, Batch: 5}, 3)
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 0))
			want := make([]byte, 8192)
			for range 500 {
				var entries []txn.Entry
				for range 1 + random.IntN(3) {
					data := make([]byte, random.IntN(900))
					for i := range data {
						data[i] = byte(random.Uint32())
					}
					off := random.IntN(len(want) - len(data))
					entries = append(entries, txn.Entry{Offset: uint64(off), Data: data})
					copy(want[off:], data)
				}
				must(s.l.Append(s.ctx(), entries...))(t)
			}
			check(t, s.l.Drain(s.ctx()))
			s.want(0, want)
			got := make([]byte, len(want))
			for i := range 3 {
				if check(t, s.l.Read(s.ctx(), i, 0, got)); !bytes.Equal(got, want) {
					t.Fatalf("replica %d reads otherwise", i)
				}
			}
		})
	}
}

func TestWhatCanNeverFitIsRefused(t *testing.T) {
	s := newScene(t, small, txn.Config{LogBytes: 4096, Locks: 8}, 2)
	ctx := s.ctx()
	for what, e := range map[error]txn.Entry{
		txn.ErrTooLarge: {Data: make([]byte, 4096)},
		txn.ErrRefused:  {Offset: s.l.DataBytes() - 1, Data: []byte("ab")},
	} {
		if err := s.l.AppendWait(ctx, e); !errors.Is(err, what) {
			t.Errorf("want %v, got %v", what, err)
		}
	}
	if err := s.l.AppendWait(ctx); !errors.Is(err, txn.ErrRefused) {
		t.Errorf("no entries: %v", err)
	}
	check(t, s.l.AppendWait(ctx, txn.Entry{Data: make([]byte, 4096-48)}))
	check(t, s.l.AppendWait(ctx, entry(0, "the largest one was drained for this")))
}
