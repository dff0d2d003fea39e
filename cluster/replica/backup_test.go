package replica_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/ostrodb/ostro/cluster/replica"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/internal/await"
)

func TestWhatIsWrittenOneSidedIsFoundByASurvey(t *testing.T) {
	s := newScene(t, 1)
	l := s.connect("b1", logID)
	x := newText(logID, 5).batch(10, 3, false).batch(11, 1, false).batch(12, 2, false)
	s.fill(l, x, x.ends[1]+7, roster(1, 9, 5))
	got := s.one("b1")
	want := replica.ReplicaInfo{Segment: 5, Version: 1, State: replica.StateOpen, End: uint32(x.ends[1]), Batch: 11, TornBytes: got.TornBytes}
	if got != want || got.TornBytes == 0 {
		t.Fatalf("got %+v, want %+v and some torn bytes", got, want)
	}
	if b := must(s.whole("b1", 5))(t); !bytes.Equal(b, x.bytes[:x.ends[1]]) {
		t.Fatalf("%d bytes were fetched, want the first %d", len(b), x.ends[1])
	}
}

func TestAReplicaIsTheLongestPrefixOfWholeBatchesForEveryByteCut(t *testing.T) {
	s := newScene(t, 1)
	l := s.connect("b1", logID)
	x := newText(logID, 5).batch(10, 2, false).batch(11, 1, false).batch(12, 0, true)
	a := must(s.open("b1", openRequest(5, roster(1, 9, 5))))(t)
	for cut := 1; cut <= x.end; cut++ {
		if st := l.write(a.Region.At(uint64(cut-1)), x.bytes[cut-1:cut]); st != fabric.OK {
			t.Fatal(st)
		}
		want := 0
		for _, end := range x.ends {
			if end <= cut {
				want = end
			}
		}
		if got := s.one("b1"); got.End != uint32(want) || got.Sealed != (cut == x.end) || got.Corrupt {
			t.Fatalf("cut at %d: %+v, want end %d", cut, got, want)
		}
	}
}

func TestACloseIsAcknowledgedOnlyIfAllOfTheSegmentIsThere(t *testing.T) {
	s := newScene(t, 1)
	l := s.connect("b1", logID)
	x := closedText(logID, 5, 10)
	closeIt := func(c replica.Closing) error {
		return s.call("b1", replica.MethodClose, replica.CloseRequest{Log: logID, Segment: 5, Closing: c}, nil, nil)
	}
	s.fill(l, x, x.end-1, roster(1, 9, 5))
	if err := closeIt(x.closing()); !errors.Is(err, replica.ErrCorrupt) {
		t.Fatalf("one byte is missing: %v", err)
	}
	if h := s.health("b1"); len(h.Corrupt) != 1 || h.Corrupt[0] != 5 {
		t.Fatalf("health says %+v", h)
	}
	s.fill(l, x, x.end, roster(1, 9, 5))
	for name, change := range map[string]func(*replica.Closing){
		"sum":   func(c *replica.Closing) { c.Sum++ },
		"end":   func(c *replica.Closing) { c.End = uint32(x.ends[2]); c.Sum = replica.Sum(x.bytes[:c.End]) },
		"batch": func(c *replica.Closing) { c.Batch++ },
		"far":   func(c *replica.Closing) { c.End = 1 << 31 },
	} {
		c := x.closing()
		change(&c)
		if err := closeIt(c); err == nil {
			t.Fatalf("another %s was acknowledged", name)
		}
	}
	check(t, closeIt(x.closing()))
	check(t, closeIt(x.closing())) // It can be repeated.
	s.flushed("b1")
	if got := s.one("b1"); got.State != replica.StateClosed || got.Corrupt || got.Sum != x.closing().Sum || !got.OnDisk {
		t.Fatalf("got %+v", got)
	}
	if b := must(s.whole("b1", 5))(t); !bytes.Equal(b, x.bytes[:x.end]) {
		t.Fatal("other bytes were fetched")
	}
	check(t, closeIt(x.closing()))
}

func (s *scene) health(to view.NodeID) (a replica.HealthAnswer) {
	s.t.Helper()
	check(s.t, s.call(to, replica.MethodHealth, replica.HealthRequest{Log: logID}, nil, &a))
	return a
}

// flushed waits until nothing is left to flush or to zero.
func (s *scene) flushed(to view.NodeID) {
	s.t.Helper()
	h := s.hosts[to]
	await.True(s.t, "closed replicas are on disk", func() bool {
		m := h.Metrics()
		return m.BuffersBusy == m.OpenReplicas
	})
}

func TestFlushesWaitForHeirsWhileThereAreBuffers(t *testing.T) {
	s := newScene(t, 1, func(o *replica.BackupOptions) { o.Buffers, o.Ready = 4, 4 }) // Who flushes makes none.
	b, l := s.hosts["b1"].Backup, s.connect("b1", logID)
	closeNext := func(id record.SegmentID) {
		x := closedText(logID, id, record.BatchID(10*id))
		s.fill(l, x, x.end, roster(uint64(id), 9, 1, 2, 3))
		check(t, s.call("b1", replica.MethodClose, replica.CloseRequest{Log: logID, Segment: id, Closing: x.closing()}, nil, nil))
	}
	if !b.MayFlush() {
		t.Fatal("nobody reads, and flushes wait")
	}
	end := b.Read()
	closeNext(1)
	closeNext(2)
	if m := b.Metrics(); b.MayFlush() || m.BuffersBusy != 2 {
		t.Fatalf("an heir reads, and flushes go on: %d of 2 wait", m.BuffersBusy)
	}
	closeNext(3) // Three of four are too many.
	await.True(t, "buffers are flushed when they get scarce", func() bool { return b.Metrics().BuffersBusy < 3 })
	end()
	s.flushed("b1")
}

func TestAKeyIsOfNoUseOnceItsReplicaIsClosed(t *testing.T) {
	s := newScene(t, 1, func(o *replica.BackupOptions) { o.Buffers, o.Ready = 1, 1 })
	l := s.connect("b1", logID)
	x := closedText(logID, 5, 10)
	old := s.fill(l, x, x.end, roster(1, 9, 5))
	check(t, s.call("b1", replica.MethodClose, replica.CloseRequest{Log: logID, Segment: 5, Closing: x.closing()}, nil, nil))
	s.flushed("b1")
	// The only buffer there is now holds another segment.
	a := must(s.open("b1", openRequest(6, roster(2, 19, 5, 6))))(t)
	if a.End != 0 {
		t.Fatalf("a fresh buffer has %d bytes", a.End)
	}
	late := s.connect("b1", logID)
	if st := late.write(old.Region.At(0), []byte("late")); st != fabric.RemoteAccess && st != fabric.PeerLost {
		t.Fatalf("a late write ended with %v", st)
	}
	if err := s.append("b1", old.Handle, 0, []byte("late")); !errors.Is(err, replica.ErrNotFound) {
		t.Fatalf("a late append ended with %v", err)
	}
	for _, r := range s.survey("b1", false).Replicas {
		if r.Segment == 6 && (r.End != 0 || r.TornBytes != 0) {
			t.Fatalf("the fresh replica has %+v", r)
		}
	}
}

func (s *scene) append(to view.NodeID, handle uint64, off uint32, b []byte) error {
	return s.call(to, replica.MethodAppend, replica.AppendHead{Handle: handle, Offset: off}.Encode(), b, nil)
}

func TestAppendsByCallsArriveAsWritesDo(t *testing.T) {
	s := newScene(t, 1, func(o *replica.BackupOptions) { o.Device = nil })
	x := closedText(logID, 5, 10)
	check(t, s.call("b1", replica.MethodConnect, replica.ConnectRequest{Log: logID}, nil, nil))
	a := must(s.open("b1", openRequest(5, roster(1, 9, 5))))(t)
	from := 0
	for _, end := range x.ends {
		check(t, s.append("b1", a.Handle, uint32(from), x.bytes[from:end]))
		from = end
	}
	if err := s.append("b1", a.Handle, segmentBytes-3, []byte("beyond")); !errors.Is(err, replica.ErrInvalid) {
		t.Fatalf("got %v", err)
	}
	if err := s.append("b1", a.Handle, 1<<32-3, []byte("beyond")); !errors.Is(err, replica.ErrInvalid) {
		t.Fatalf("got %v", err)
	}
	check(t, s.call("b1", replica.MethodClose, replica.CloseRequest{Log: logID, Segment: 5, Closing: x.closing()}, nil, nil))
}

func TestAFenceEndsAllWritesForGood(t *testing.T) {
	for _, again := range []bool{false, true} {
		s := newScene(t, 1)
		l := s.connect("b1", logID)
		x := newText(logID, 5).batch(10, 3, false).batch(11, 1, false)
		a := s.fill(l, x, x.ends[0], roster(1, 9, 5))
		got := s.survey("b1", true)
		if !got.Retired || got.Replicas[0].End != uint32(x.ends[0]) {
			t.Fatalf("got %+v", got)
		}
		if st := l.write(a.Region.At(uint64(x.ends[0])), x.bytes[x.ends[0]:x.end]); st == fabric.OK {
			t.Fatal("a write went through the fence")
		}
		if again {
			s.hosts["b1"].restart()
		}
		for method, q := range map[string]any{
			replica.MethodConnect: replica.ConnectRequest{Log: logID},
			replica.MethodOpen:    openRequest(6, roster(2, 9, 5, 6)),
			replica.MethodClose:   replica.CloseRequest{Log: logID, Segment: 5, Closing: x.closing()},
			replica.MethodRaise:   replica.RaiseRequest{Log: logID, Version: 7, Segments: []record.SegmentID{5}},
			replica.MethodRoster:  replica.RosterRequest{Log: logID, Roster: roster(3, 9)},
		} {
			if err := s.call("b1", method, q, nil, nil); !errors.Is(err, replica.ErrRetired) {
				t.Errorf("%s of a retired log: %v", method, err)
			}
		}
		y := closedText(logID, 7, 100)
		if err := s.put("b1", y, roster(4, 9, 5, 7)); !errors.Is(err, replica.ErrRetired) {
			t.Errorf("a put of a retired log: %v", err)
		}
		if err := s.append("b1", a.Handle, 0, []byte{1}); !errors.Is(err, replica.ErrNotFound) {
			t.Errorf("an append to a retired log: %v", err)
		}
		if after := s.survey("b1", false); after.Replicas[0].End != got.Replicas[0].End || !after.Retired || after.Roster.Number != 1 {
			t.Errorf("after the fence there is %+v", after)
		}
	}
}

func TestALogThatABackupNeverHeardOfCanBeFenced(t *testing.T) {
	s := newScene(t, 1)
	if a := s.survey("b1", false); a.Retired || len(a.Replicas) > 0 {
		t.Fatalf("got %+v", a)
	}
	s.survey("b1", true)
	s.hosts["b1"].restart()
	if _, err := s.open("b1", openRequest(5, roster(1, 0, 5))); !errors.Is(err, replica.ErrRetired) {
		t.Fatalf("got %v", err)
	}
}

func TestALogBelongsToTheNodeThatOpenedIt(t *testing.T) {
	s := newScene(t, 1)
	must(s.open("b1", openRequest(5, roster(1, 0, 5))))(t)
	thief := s.poolOf("thief")
	for range 2 {
		_, err := thief.Call(s.ctx(), "b1", replica.MethodOpen, openRequest(6, roster(2, 0, 5, 6)), nil, nil)
		if !errors.Is(err, replica.ErrForeign) {
			t.Fatalf("got %v", err)
		}
		_, err = thief.Call(s.ctx(), "b1", replica.MethodForget, replica.ForgetRequest{Log: logID}, nil, nil)
		if !errors.Is(err, replica.ErrForeign) {
			t.Fatalf("got %v", err)
		}
		s.hosts["b1"].restart()
	}
}

func TestARosterDropsWhatIsNotInIt(t *testing.T) {
	s := newScene(t, 1)
	for i := range record.SegmentID(3) {
		check(t, s.put("b1", closedText(logID, 1+i, record.BatchID(1+100*i)), roster(uint64(1+i), 0, 1, 2, 3)))
	}
	must(s.open("b1", openRequest(9, roster(4, 0, 1, 2, 3, 9))))(t)
	drop := func(r replica.Roster) {
		check(t, s.call("b1", replica.MethodRoster, replica.RosterRequest{Log: logID, Roster: r}, nil, nil))
	}
	drop(roster(6, 0, 1, 3))
	drop(roster(5, 0, 1, 2, 3, 9)) // That one comes late.
	a := s.survey("b1", false)
	if len(a.Replicas) != 2 || a.Replicas[0].Segment != 1 || a.Replicas[1].Segment != 3 || a.Roster.Number != 6 {
		t.Fatalf("got %+v", a)
	}
	if err := s.put("b1", closedText(logID, 2, 101), roster(5, 0, 1, 2, 3)); !errors.Is(err, replica.ErrStale) {
		t.Fatalf("a segment that was dropped came back: %v", err)
	}
	if _, err := s.open("b1", openRequest(9, roster(5, 0, 1, 2, 3, 9))); !errors.Is(err, replica.ErrStale) {
		t.Fatalf("a segment that was dropped came back: %v", err)
	}
	if names := files(t, s.hosts["b1"].dir+"/replicas"); len(names) != 2 {
		t.Fatalf("files %v", names)
	}
	s.flushed("b1")
}

func TestAnOpenReplicaOfALowerVersionIsDroppedWhenARosterSaysSo(t *testing.T) {
	s := newScene(t, 1)
	must(s.open("b1", openRequest(5, roster(1, 0, 5, 6))))(t)
	must(s.open("b1", openRequest(6, roster(2, 0, 5, 6))))(t)
	check(t, s.call("b1", replica.MethodRaise, replica.RaiseRequest{Log: logID, Version: 2, Segments: []record.SegmentID{6}}, nil, nil))
	s.hosts["b1"].restart()
	if n := len(s.survey("b1", false).Replicas); n != 2 {
		t.Fatalf("%d replicas; both are to be kept until it is known", n)
	}
	r := roster(3, 0, 5, 6)
	r.Version = 2
	check(t, s.call("b1", replica.MethodRoster, replica.RosterRequest{Log: logID, Roster: r}, nil, nil))
	if got := s.one("b1"); got.Segment != 6 || got.Version != 2 {
		t.Fatalf("got %+v", got)
	}
	if _, err := s.open("b1", openRequest(5, roster(4, 0, 5, 6))); err == nil {
		t.Fatal("an open of version 1 was taken after version 2")
	}
}

func TestAReplicaThatIsBeingCreatedCountsOnlyOnceItIsRaised(t *testing.T) {
	s := newScene(t, 1)
	q := openRequest(5, roster(1, 0, 5))
	q.Creating = true
	must(s.open("b1", q))(t)
	s.hosts["b1"].restart()
	if got := s.one("b1"); got.State != replica.StateCreating {
		t.Fatalf("got %+v", got)
	}
	raise := replica.RaiseRequest{Log: logID, Version: 2, Segments: []record.SegmentID{5, 6}}
	if err := s.call("b1", replica.MethodRaise, raise, nil, nil); !errors.Is(err, replica.ErrNotFound) {
		t.Fatalf("got %v", err)
	}
	if got := s.one("b1"); got.State != replica.StateCreating || got.Version != 1 {
		t.Fatalf("a raise that failed changed it to %+v", got)
	}
	raise.Segments = raise.Segments[:1]
	check(t, s.call("b1", replica.MethodRaise, raise, nil, nil))
	s.hosts["b1"].restart()
	if got := s.one("b1"); got.State != replica.StateOpen || got.Version != 2 {
		t.Fatalf("got %+v", got)
	}
}

func TestAReplicaThatCountsGoesOnToCountWhileItIsReplaced(t *testing.T) {
	s := newScene(t, 1)
	must(s.open("b1", openRequest(5, roster(1, 0, 5))))(t)
	q := openRequest(5, roster(2, 0, 5))
	q.Creating, q.Version = true, 2
	must(s.open("b1", q))(t)
	s.hosts["b1"].restart()
	if got := s.one("b1"); got.State != replica.StateOpen || got.Version != 1 {
		t.Fatalf("its primary could die now, and it would be %+v", got)
	}
	check(t, s.call("b1", replica.MethodRaise, replica.RaiseRequest{Log: logID, Version: 2, Segments: []record.SegmentID{5}}, nil, nil))
	if got := s.one("b1"); got.State != replica.StateOpen || got.Version != 2 {
		t.Fatalf("got %+v", got)
	}
	later := openRequest(5, roster(3, 0, 5))
	later.Creating, later.Version, later.Roster.Version = true, 3, 3
	if _, err := s.open("b1", later); !errors.Is(err, replica.ErrStale) {
		t.Fatalf("a replica of version 2 of a log of version 3 is stale: got %v", err)
	}
}

func TestAnOpenThatIsRepeatedKeepsWhatIsThere(t *testing.T) {
	s := newScene(t, 1)
	l := s.connect("b1", logID)
	x := newText(logID, 5).batch(10, 3, false).batch(11, 3, false)
	first := s.fill(l, x, x.ends[0], roster(1, 9, 5))
	second := must(s.open("b1", openRequest(5, roster(1, 9, 5))))(t)
	if second.End != uint32(x.ends[0]) || second.Region.Key == first.Region.Key {
		t.Fatalf("got %+v after %+v", second, first)
	}
	if st := l.write(second.Region.At(uint64(x.ends[0])), x.bytes[x.ends[0]:x.end]); st != fabric.OK {
		t.Fatal(st)
	}
	if st := l.write(first.Region.At(0), x.bytes[:8]); st == fabric.OK {
		t.Fatal("the first key still works")
	}
	if got := s.one("b1"); got.End != uint32(x.end) {
		t.Fatalf("got %+v", got)
	}
}

func TestABackupRefusesMoreThanItsDiskCanSave(t *testing.T) {
	s := newScene(t, 1, func(o *replica.BackupOptions) { o.FlushRate, o.HoldUp = segmentBytes, 3e9 })
	ids := []record.SegmentID{1, 2, 3, 4}
	for i, id := range ids[:3] {
		must(s.open("b1", openRequest(id, roster(uint64(1+i), 0, ids[:1+i]...))))(t)
	}
	_, err := s.open("b1", openRequest(4, roster(4, 0, ids...)))
	if !errors.Is(err, replica.ErrFull) {
		t.Fatalf("got %v", err)
	}
	if h := s.health("b1"); !h.Full || h.Open != 3 {
		t.Fatalf("health says %+v", h)
	}
	if a := s.survey("b1", false); a.Roster.Number != 3 {
		t.Fatalf("the roster of a refused open was kept: %+v", a.Roster)
	}
	check(t, s.call("b1", replica.MethodRoster, replica.RosterRequest{Log: logID, Roster: roster(5, 0, 2, 3)}, nil, nil))
	await.True(t, "the buffer is zeroed", func() bool { return !s.health("b1").Full })
	must(s.open("b1", openRequest(4, roster(6, 0, 2, 3, 4))))(t)
}

func TestAForgottenLogLeavesNothing(t *testing.T) {
	s := newScene(t, 1)
	must(s.open("b1", openRequest(5, roster(1, 0, 4, 5))))(t)
	check(t, s.put("b1", closedText(logID, 4, 1), roster(2, 0, 4, 5)))
	s.survey("b1", true)
	check(t, s.hosts["b1"].Forget(logID))
	s.hosts["b1"].restart()
	if a := s.survey("b1", false); len(a.Replicas) > 0 || !a.Retired {
		t.Fatalf("got %+v", a)
	}
	if _, err := s.open("b1", openRequest(5, roster(3, 0, 5))); !errors.Is(err, replica.ErrRetired) {
		t.Fatalf("got %v", err)
	}
	if names := files(t, s.hosts["b1"].dir+"/replicas"); len(names) > 0 {
		t.Fatalf("files %v", names)
	}
	s.flushed("b1")
}
