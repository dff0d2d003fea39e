package txn_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/cluster/group"
	"github.com/ostrodb/ostro/cluster/txn"
	"github.com/ostrodb/ostro/fabric/fabrictest"
)

var plain = txn.Config{LogBytes: 1024, Locks: 4}

// again opens a group of some of the replicas.
func (s *scene) again(c txn.Config, in ...int) error {
	s.t.Helper()
	var members []group.Member
	for _, i := range in {
		members = append(members, s.replicas[i])
	}
	g := must(group.Open(s.ctx(), s.client, s.spec, members...))(s.t)
	s.t.Cleanup(func() { check(s.t, g.Close()) })
	l, err := txn.Initialize(s.ctx(), g, c)
	if err != nil {
		check(s.t, g.Close())
		s.leave()
		return err
	}
	s.t.Cleanup(func() { check(s.t, l.Close()) })
	s.g, s.l = g, l
	return nil
}

// reborn starts a replica's program anew on its memory.
func (s *scene) reborn(i int) {
	s.spies[i] = &fabrictest.Spy{Device: s.device("reborn")}
	s.replicas[i] = group.NewReplica(s.spies[i], s.mems[i])
}

func TestANewClientExecutesWhatTheOldOneAppended(t *testing.T) {
	s := newScene(t, small, plain, 3)
	check(t, s.l.AppendWait(s.ctx(), entry(0, "executed")))
	must(s.l.ExecuteAndAdvance(s.ctx()))(t)
	check(t, s.l.AppendWait(s.ctx(), entry(3, "appended"), entry(50, "only")))
	s.close()
	check(t, s.again(plain, 2, 0, 1))
	s.want(0, []byte("exeappended"))
	s.want(50, []byte("only"))
	if n, _ := s.l.Unexecuted(); n != 0 {
		t.Fatalf("%d records are left", n)
	}
}

func TestLocksOfADeadClientAreFree(t *testing.T) {
	s := newScene(t, small, plain, 3)
	check(t, s.l.WrLock(s.ctx(), 9, 0))
	check(t, s.l.RdLock(s.ctx(), 1, 1))
	s.close()
	check(t, s.again(plain, 0, 1, 2))
	for lock := range 4 {
		check(t, s.l.WrLock(s.ctx(), 1, lock))
	}
}

func TestABlankMemberGetsEverything(t *testing.T) {
	s := newScene(t, small, plain, 3)
	check(t, s.l.AppendWait(s.ctx(), entry(0, "first"), entry(s.l.DataBytes()-4, "last")))
	s.close()
	clear(s.mems[1].Bytes())
	var steps, total uint64
	c := plain
	c.Progress = func(done, all uint64) { steps, total = steps+1, all }
	check(t, s.again(c, 0, 1, 2))
	if steps == 0 || total != s.l.DataBytes() {
		t.Fatalf("%d steps to %d of %d bytes", steps, total, s.l.DataBytes())
	}
	s.want(0, []byte("first"))
	s.want(s.l.DataBytes()-4, []byte("last"))
	steps = 0
	s.close()
	check(t, s.again(c, 1))
	if steps != 0 {
		t.Fatal("the new member is none")
	}
	s.want(0, []byte("first"))
}

func TestAMemberThatWasAwayLosesWhatOnlyItHas(t *testing.T) {
	s := newScene(t, small, plain, 3)
	check(t, s.l.AppendWait(s.ctx(), entry(0, "all have this")))
	s.close()
	check(t, s.again(plain, 1, 2)) // Without replica 0.
	check(t, s.l.AppendWait(s.ctx(), entry(0, "the two go on")))
	s.close()
	check(t, s.again(plain, 0, 1, 2))
	s.want(0, []byte("the two go on"))
}

func TestReplicasThatWentSeparateWaysAreToldApart(t *testing.T) {
	s := newScene(t, small, plain, 2)
	s.close()
	for _, i := range []int{0, 1} {
		check(t, s.again(plain, i))
		check(t, s.l.AppendWait(s.ctx(), entry(0, "each on its own")))
		s.close()
	}
	if err := s.again(plain, 0, 1); !errors.Is(err, txn.ErrDiverged) {
		t.Fatalf("they are opened: %v", err)
	}
}

// begunInPart is what a client leaves that dies when it has told both replicas of a new
// epoch and begun it on the first.
func (s *scene) begunInPart() {
	le, a, b := binary.LittleEndian, s.mems[0].Bytes(), s.mems[1].Bytes()
	begun := le.Uint64(a[64:])>>32<<32 + 1<<32 + 12345
	le.PutUint64(a[64:], begun)
	le.PutUint64(a[72:], begun)
	le.PutUint64(b[72:], begun)
}

func TestAnEpochThatWasBegunInPartIsNotBegunAgain(t *testing.T) {
	s := newScene(t, small, plain, 2)
	s.close()
	s.begunInPart()
	check(t, s.again(plain, 1))
	check(t, s.l.AppendWait(s.ctx(), entry(0, "alone")))
	s.close()
	check(t, s.again(plain, 0, 1))
	s.want(0, []byte("alone"))
}

func TestWhoWasToldOfAnEpochIsInIt(t *testing.T) {
	s := newScene(t, small, plain, 2)
	check(t, s.l.AppendWait(s.ctx(), entry(0, "of both")))
	s.close()
	s.begunInPart()
	c := plain
	c.Progress = func(uint64, uint64) { t.Error("it is copied to like a stranger") }
	check(t, s.again(c, 0, 1))
	s.want(0, []byte("of both"))
}

func TestAnIncompleteCopyIsNoMember(t *testing.T) {
	s := newScene(t, small, plain, 2)
	s.close()
	clear(s.mems[1].Bytes())
	half := plain
	half.Progress = func(done, total uint64) {
		if done == total {
			check(t, s.spies[1].Close()) // All is copied, and it does not know.
		}
	}
	if err := s.again(half, 0, 1); !errors.Is(err, group.ErrBroken) {
		t.Fatalf("the copy was not cut: %v", err)
	}
	s.reborn(1)
	if err := s.again(plain, 1); err == nil || !strings.Contains(err.Error(), "incomplete copy") {
		t.Fatalf("half a copy is opened: %v", err)
	}
	check(t, s.again(plain, 1, 0))
}

func TestForeignMemoryIsRefused(t *testing.T) {
	other := plain
	other.LogBytes = 2048
	more := plain
	more.Locks = 5
	for what, change := range map[string]func(s *scene) txn.Config{
		"another log":      func(s *scene) txn.Config { return other },
		"another number":   func(s *scene) txn.Config { return more },
		"something else":   func(s *scene) txn.Config { copy(s.mems[1].Bytes(), "SQLite format 3"); return plain },
		"a changed header": func(s *scene) txn.Config { s.mems[1].Bytes()[20] ^= 1; return plain },
		"another group": func(s *scene) txn.Config {
			b := newScene(t, small, plain, 1)
			b.close()
			copy(s.mems[1].Bytes(), b.mems[0].Bytes())
			return plain
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := newScene(t, small, plain, 2)
			s.close()
			before := bytes.Clone(s.mems[0].Bytes())
			if err := s.again(change(s), 0, 1); !errors.Is(err, txn.ErrForeign) {
				t.Fatalf("it is opened: %v", err)
			}
			if !bytes.Equal(before, s.mems[0].Bytes()) {
				t.Fatal("a refusal changes memory")
			}
		})
	}
	s := prepare(t, small, 1)
	for _, c := range []txn.Config{{Locks: -1}, {LogBytes: 100}, {LogBytes: 1 << 30}, {LogBytes: memoryBytes - 4096}} {
		if err := s.again(c, 0); !errors.Is(err, txn.ErrRefused) {
			t.Fatalf("%+v: %v", c, err)
		}
	}
}

func TestReadersOfAReplicaWaitForRecoveryAndReadAgain(t *testing.T) {
	s := newScene(t, small, plain, 2)
	r := txn.NewReader(s.replicas[0], s.mems[0])
	check(t, s.l.Update(s.ctx(), []int{0}, func(tx *txn.Tx) error {
		tx.Write(0, []byte("old"))
		return nil
	}))
	calls := 0
	check(t, r.View(s.ctx(), []int{0}, func(data []byte) error {
		if calls++; calls == 1 { // Recovered while it reads, by a client that changes what it read.
			s.close()
			check(t, s.again(plain, 0, 1))
			check(t, s.l.AppendWait(s.ctx(), entry(0, "new")))
			must(s.l.ExecuteAndAdvance(s.ctx()))(t)
			return nil
		}
		if got := string(data[:3]); got != "new" {
			t.Fatalf("the second time it reads %q", got)
		}
		return nil
	}))
	if calls != 2 {
		t.Fatalf("it was called %d times", calls)
	}
	check(t, s.l.WrLock(s.ctx(), 1, 0)) // The reader's first lock is gone, its second released.
	s.close()
	if err := r.View(s.ctx(), []int{0}, func([]byte) error { return nil }); !errors.Is(err, txn.ErrNotServing) {
		t.Fatalf("a replica of no group is read: %v", err)
	}
}

func TestANewMemberIsCopiedToWhileTransactionsGoOn(t *testing.T) {
	s := newScene(t, small, txn.Config{LogBytes: 4096, Locks: accounts}, 2)
	fresh := prepare(t, small, 1)
	spare := must(group.Open(s.ctx(), fresh.client, small, fresh.replicas[0]))(t)
	defer spare.Close()
	check(t, fund(s.ctx(), s.l))
	moved := make(chan error)
	go func() {
		for {
			if err := transfer(s.ctx(), s.l, 0, 5, 1); err != nil {
				moved <- err
				return
			}
		}
	}()
	started := make(chan struct{})
	var once bool
	check(t, s.l.CopyTo(s.ctx(), spare, func(done, total uint64) {
		if !once {
			once = true
			close(started)
		}
	}))
	<-started
	if err := <-moved; !errors.Is(err, txn.ErrMoved) {
		t.Fatalf("transactions end with %v", err)
	}
	check(t, audit(s.ctx(), s.l, 1))
	want := make([]byte, s.l.DataBytes())
	check(t, s.l.Read(s.ctx(), 0, 0, want))
	s.close()
	check(t, spare.Close())
	fresh.leave()
	if got := fresh.mems[0].Bytes()[s.l.DataOffset():]; !bytes.Equal(got, want) {
		t.Fatal("the new member has other data")
	}
	epoch := func(m []byte) uint64 { return binary.LittleEndian.Uint64(m[64:]) }
	if a, b := epoch(s.mems[0].Bytes()), epoch(fresh.mems[0].Bytes()); a != b {
		t.Fatalf("the new member is in epoch %x, the others in %x", b, a)
	}
	check(t, fresh.again(plainOf(4096), 0)) // Complete: it can go on alone.
	check(t, audit(context.Background(), fresh.l, 0))
}

func plainOf(log uint64) txn.Config { return txn.Config{LogBytes: log, Locks: accounts} }

// Of two records on their way, a loss of power kept the second alone. It was dropped
// with the first; it must not come back behind another record of the first one's size.
func TestARecordThatWasDroppedStaysDropped(t *testing.T) {
	for what, executed := range map[string]bool{"behind a record": false, "at the head": true} {
		t.Run(what, func(t *testing.T) {
			s := newScene(t, small, plain, 2)
			check(t, s.l.AppendWait(s.ctx(), entry(0, "first")))
			check(t, s.l.AppendWait(s.ctx(), entry(100, "second")))
			s.close()
			for _, m := range s.mems {
				log := bytes.Index(m.Bytes()[:s.l.DataOffset()], []byte("first"))
				if log < 0 {
					t.Fatal("no record is in the log")
				}
				m.Bytes()[log] ^= 1
			}
			check(t, s.again(plain, 0, 1))
			s.want(100, make([]byte, 6))
			check(t, s.l.AppendWait(s.ctx(), entry(0, "other")))
			if executed {
				must(s.l.ExecuteAndAdvance(s.ctx()))(t)
			}
			s.close()
			check(t, s.again(plain, 0, 1))
			s.want(0, []byte("other"))
			s.want(100, make([]byte, 6))
		})
	}
}

// A client dies when the head of the first replica has leapt, and the other's has not.
func TestARecoveryThatDiesWhileHeadsLeapIsFinishedWithoutACopy(t *testing.T) {
	s := newScene(t, small, plain, 2)
	check(t, s.l.AppendWait(s.ctx(), entry(0, "kept")))
	s.close()
	check(t, s.again(plain, 0, 1))
	s.close()
	head := s.mems[1].Bytes()[88:]
	binary.LittleEndian.PutUint64(head, binary.LittleEndian.Uint64(head)-plain.LogBytes-8)
	c := plain
	c.Progress = func(uint64, uint64) { t.Error("it is copied to like a stranger") }
	check(t, s.again(c, 0, 1))
	check(t, s.l.AppendWait(s.ctx(), entry(4, " and more")))
	check(t, s.l.Drain(s.ctx()))
	s.want(0, []byte("kept and more"))
}
