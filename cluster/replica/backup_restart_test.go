package replica_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/cluster/replica"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/internal/await"
)

func TestARestartFindsEveryReplicaAgain(t *testing.T) {
	s := newScene(t, 1)
	l := s.connect("b1", logID)
	r := roster(7, 9, 1, 2, 3, 4)
	open := newText(logID, 1).batch(10, 3, false).batch(11, 3, false)
	s.fill(l, open, open.ends[0]+20, r)
	shut := closedText(logID, 2, 20)
	s.fill(l, shut, shut.end, r)
	check(t, s.call("b1", replica.MethodClose, replica.CloseRequest{Log: logID, Segment: 2, Closing: shut.closing()}, nil, nil))
	stored := closedText(logID, 3, 40)
	check(t, s.put("b1", stored, r))
	must(s.open("b1", openRequest(4, r)))(t)
	before := s.survey("b1", false)
	for range 3 {
		s.hosts["b1"].restart()
		after := s.survey("b1", false)
		if after.Roster.Number != 7 || after.Roster.Safe != 9 || len(after.Replicas) != 4 {
			t.Fatalf("got %+v", after)
		}
		for i, got := range after.Replicas {
			want := before.Replicas[i]
			want.OnDisk, got.OnDisk = false, false
			if got != want {
				t.Fatalf("got %+v, want %+v", got, want)
			}
		}
		for _, x := range []*text{shut, stored} {
			if b := must(s.whole("b1", x.id))(t); !bytes.Equal(b, x.bytes[:x.end]) {
				t.Fatalf("segment %d has other bytes", x.id)
			}
		}
	}
	// The primary goes on where it was.
	l = s.connect("b1", logID)
	a := must(s.open("b1", openRequest(1, roster(8, 9, 1, 2, 3, 4))))(t)
	if a.End != uint32(open.ends[0]) {
		t.Fatalf("got %+v", a)
	}
	if st := l.write(a.Region.At(0), open.bytes[:open.end]); st != fabric.OK {
		t.Fatal(st)
	}
	if got := s.survey("b1", false).Replicas[0]; got.End != uint32(open.end) || got.Batch != 11 {
		t.Fatalf("got %+v", got)
	}
}

func TestAReplicaThatIsInAFileAndStillInItsBufferIsFoundOnce(t *testing.T) {
	s := newScene(t, 1)
	h := s.hosts["b1"]
	x := closedText(logID, 5, 10)
	l := s.connect("b1", logID)
	s.fill(l, x, x.end, roster(1, 9, 5))
	// As if the process had died after the flush, before its buffer said so.
	saved := must(os.ReadFile(bufferFile(t, h)))(t)
	name := bufferFile(t, h)
	check(t, s.call("b1", replica.MethodClose, replica.CloseRequest{Log: logID, Segment: 5, Closing: x.closing()}, nil, nil))
	s.flushed("b1")
	h.stop()
	check(t, os.WriteFile(name, saved, 0o600))
	h.start()
	if got := s.one("b1"); got.State != replica.StateClosed || !got.OnDisk {
		t.Fatalf("got %+v", got)
	}
	s.flushed("b1")
}

// bufferFile is the one buffer that is in use.
func bufferFile(t *testing.T, h *host) string {
	t.Helper()
	for _, name := range files(t, filepath.Join(h.dir, "buffers")) {
		path := filepath.Join(h.dir, "buffers", name)
		b := must(os.ReadFile(path))(t)
		if made := len(b) == 64<<10+segmentBytes; made && !bytes.Equal(b[64<<10:], make([]byte, segmentBytes)) {
			return path
		}
	}
	t.Fatal("no buffer is in use")
	return ""
}

func TestAHeaderThatWasBeingWrittenWhenItsProcessDiedIsNotBelieved(t *testing.T) {
	s := newScene(t, 1)
	h := s.hosts["b1"]
	x := newText(logID, 5).batch(10, 3, false)
	s.fill(s.connect("b1", logID), x, x.end, roster(1, 9, 5))
	for range 3 { // More headers, in turn in both slots.
		must(s.open("b1", openRequest(5, roster(1, 9, 5))))(t)
	}
	h.stop()
	path := bufferFile(t, h)
	good := must(os.ReadFile(path))(t)
	for slot := range 2 {
		for at := range 72 {
			b := bytes.Clone(good)
			b[slot*4096+at] ^= 0xff
			check(t, os.WriteFile(path, b, 0o600))
			h.start()
			if got := s.one("b1"); got.End != uint32(x.end) || got.State != replica.StateOpen {
				t.Fatalf("slot %d, byte %d: %+v", slot, at, got)
			}
			h.stop()
		}
	}
}

func TestABufferWithoutAHeaderIsSetAside(t *testing.T) {
	s := newScene(t, 1)
	h := s.hosts["b1"]
	x := newText(logID, 5).batch(10, 3, false)
	s.fill(s.connect("b1", logID), x, x.end, roster(1, 9, 5))
	path := bufferFile(t, h)
	h.stop()
	b := must(os.ReadFile(path))(t)
	clear(b[:8192])
	check(t, os.WriteFile(path, b, 0o600))
	h.start()
	if n := len(s.survey("b1", false).Replicas); n != 0 {
		t.Fatalf("%d replicas", n)
	}
	if _, err := os.Stat(path + ".broken"); err != nil {
		t.Fatal(err)
	}
}

func TestDamagedFilesAreFoundAndReplaced(t *testing.T) {
	for name, harm := range map[string]func(path string) error{
		"a bit": func(path string) error {
			b, err := os.ReadFile(path)
			if err == nil {
				b[100] ^= 1
				err = os.WriteFile(path, b, 0o600)
			}
			return err
		},
		"cut":    func(path string) error { return os.Truncate(path, 200) },
		"empty":  func(path string) error { return os.Truncate(path, 0) },
		"longer": func(path string) error { return os.Truncate(path, 1<<20) },
		"gone":   os.Remove,
	} {
		for _, again := range []bool{false, true} {
			if again && name == "gone" {
				continue // Then nothing tells that it was ever here.
			}
			var told []record.SegmentID
			s := newScene(t, 1, func(o *replica.BackupOptions) {
				o.Corrupt = func(_ record.LogID, id record.SegmentID) { told = append(told, id) }
			})
			h := s.hosts["b1"]
			x, y := closedText(logID, 5, 10), closedText(logID, 6, 20)
			check(t, s.put("b1", x, roster(1, 9, 5, 6)))
			check(t, s.put("b1", y, roster(1, 9, 5, 6)))
			check(t, harm(replicaPath(h, 5)))
			if again {
				h.restart()
			}
			if n := h.Scrub(); n != 1 {
				t.Fatalf("%s: %d corrupt replicas were found", name, n)
			}
			if a := s.health("b1"); len(a.Corrupt) != 1 || a.Corrupt[0] != 5 {
				t.Fatalf("%s: health says %+v", name, a)
			}
			if !again && (len(told) != 1 || told[0] != 5) {
				t.Fatalf("%s: told of %v", name, told)
			}
			if _, err := s.whole("b1", 5); err == nil {
				t.Fatalf("%s: a corrupt replica was sent", name)
			}
			if got := s.survey("b1", false).Replicas[0]; !got.Corrupt {
				t.Fatalf("%s: %+v", name, got)
			}
			check(t, s.put("b1", x, roster(1, 9, 5, 6)))
			if b := must(s.whole("b1", 5))(t); !bytes.Equal(b, x.bytes[:x.end]) || h.Scrub() != 0 {
				t.Fatalf("%s: the new copy is no better", name)
			}
			h.stop()
		}
	}
}

func TestAPutThatIsNotWhatItSaysLeavesNothing(t *testing.T) {
	s := newScene(t, 1)
	x := closedText(logID, 5, 10)
	put := func(change func(*replica.PutRequest, []byte) []byte) error {
		q := replica.PutRequest{Log: logID, Segment: 5, Closing: x.closing(), Roster: roster(1, 9, 5)}
		b := change(&q, bytes.Clone(x.bytes[:x.end]))
		return s.call("b1", replica.MethodPut, q, b, nil)
	}
	for name, change := range map[string]func(*replica.PutRequest, []byte) []byte{
		"another sum":     func(q *replica.PutRequest, b []byte) []byte { q.Sum++; return b },
		"another batch":   func(q *replica.PutRequest, b []byte) []byte { q.Batch++; return b },
		"another segment": func(q *replica.PutRequest, b []byte) []byte { q.Segment, q.Roster = 6, roster(1, 9, 6); return b },
		"another log":     func(q *replica.PutRequest, b []byte) []byte { q.Log = 99; return b },
		"less":            func(q *replica.PutRequest, b []byte) []byte { return b[:len(b)-8] },
		"an open segment": func(q *replica.PutRequest, b []byte) []byte {
			q.End = uint32(x.ends[3])
			q.Batch, q.Sum = x.batches[3], replica.Sum(b[:q.End])
			return b[:q.End]
		},
		"a flipped payload": func(q *replica.PutRequest, b []byte) []byte {
			b[record.SegmentHeaderBytes+record.HeaderBytes+2] ^= 1
			q.Sum = replica.Sum(b)
			return b
		},
		"not in its roster": func(q *replica.PutRequest, b []byte) []byte { q.Roster = roster(1, 9, 4); return b },
		"no roster":         func(q *replica.PutRequest, b []byte) []byte { q.Roster = replica.Roster{}; return b },
	} {
		if err := put(change); err == nil {
			t.Errorf("%s was taken", name)
		}
		if names := files(t, s.hosts["b1"].dir+"/replicas"); len(names) > 0 {
			t.Errorf("%s left %v", name, names)
		}
	}
	check(t, put(func(_ *replica.PutRequest, b []byte) []byte { return b }))
}

func TestAPutReplacesAnOpenReplica(t *testing.T) {
	s := newScene(t, 1)
	x := closedText(logID, 5, 10)
	l := s.connect("b1", logID)
	a := s.fill(l, x, x.ends[4], roster(1, 9, 5))
	check(t, s.put("b1", x, roster(2, 9, 5)))
	if st := l.write(a.Region.At(0), x.bytes[:8]); st == fabric.OK {
		t.Fatal("the key of the open replica still works")
	}
	for range 2 {
		if got := s.one("b1"); got.State != replica.StateClosed || got.End != uint32(x.end) {
			t.Fatalf("got %+v", got)
		}
		if _, err := s.open("b1", openRequest(5, roster(2, 9, 5))); !errors.Is(err, replica.ErrClosed) {
			t.Fatalf("got %v", err)
		}
		s.hosts["b1"].restart()
	}
	s.flushed("b1")
}

func TestASecondBackupInTheSameDirectoryIsRefused(t *testing.T) {
	s := newScene(t, 1)
	_, err := replica.OpenBackup(replica.BackupOptions{Dir: s.hosts["b1"].dir, SegmentBytes: segmentBytes})
	if err == nil || !strings.Contains(err.Error(), "another process uses it") {
		t.Fatalf("got %v", err)
	}
}

func TestDamagedNotesOfALogAreSetAsideAndItsReplicasKept(t *testing.T) {
	s := newScene(t, 1)
	h := s.hosts["b1"]
	check(t, s.put("b1", closedText(logID, 5, 10), roster(3, 9, 5)))
	h.stop()
	path := filepath.Join(h.dir, "logs", files(t, filepath.Join(h.dir, "logs"))[0])
	b := must(os.ReadFile(path))(t)
	b[20] ^= 1
	check(t, os.WriteFile(path, b, 0o600))
	h.start()
	if a := s.survey("b1", false); a.Roster.Number != 0 || len(a.Replicas) != 1 {
		t.Fatalf("got %+v", a)
	}
	if f := s.find("b1"); f.Answered("b1", 0) || len(f.Failed) != 0 {
		t.Errorf("who does not know which segments there are counts as having answered, or not as reached: %v", f.Failed)
	}
}

func TestBuffersAreZeroWhenTheyAreLentAgain(t *testing.T) {
	s := newScene(t, 1, func(o *replica.BackupOptions) { o.Buffers, o.Ready = 2, 2 })
	l := s.connect("b1", logID)
	r := seeded(t)
	var kept []record.SegmentID
	number := uint64(0)
	for id := record.SegmentID(1); id <= 30; id++ {
		number++
		list := append(kept, id)
		var a replica.OpenAnswer
		await.True(t, "there is a free buffer", func() bool {
			var err error
			a, err = s.open("b1", openRequest(id, roster(number, 0, list...)))
			if err != nil && !errors.Is(err, replica.ErrFull) {
				t.Fatal(err)
			}
			return err == nil
		})
		for _, got := range s.survey("b1", false).Replicas {
			if got.Segment == id && (got.End != 0 || got.TornBytes != 0) {
				t.Fatalf("a fresh replica has %+v", got)
			}
		}
		x := closedText(logID, id, record.BatchID(id)*100)
		if st := l.write(a.Region.At(0), x.bytes[:x.end]); st != fabric.OK {
			t.Fatal(st)
		}
		if r.IntN(2) == 0 {
			check(t, s.call("b1", replica.MethodClose, replica.CloseRequest{Log: logID, Segment: id, Closing: x.closing()}, nil, nil))
			kept = append(kept, id)
			continue
		}
		number++
		check(t, s.call("b1", replica.MethodRoster, replica.RosterRequest{Log: logID, Roster: roster(number, 0, kept...)}, nil, nil))
	}
	if n := len(s.survey("b1", false).Replicas); n != len(kept) {
		t.Fatalf("%d replicas, want %d", n, len(kept))
	}
}

func TestAReaderHoldsUpNoBufferButItsOwn(t *testing.T) {
	s := newScene(t, 1)
	h := s.hosts["b1"]
	for id := record.SegmentID(1); id <= 3; id++ {
		must(s.open("b1", openRequest(id, roster(uint64(id), 0, 1, 2, 3))))(t)
	}
	release := must(h.Pin(logID, 1))(t)
	check(t, s.call("b1", replica.MethodRoster, replica.RosterRequest{Log: logID, Roster: roster(9, 0)}, nil, nil))
	await.True(t, "the other two are zeroed", func() bool { return h.Metrics().BuffersBusy == 1 })
	release()
	await.True(t, "the last one is zeroed", func() bool { return h.Metrics().BuffersBusy == 0 })
}

func TestBuffersMayLieInADirectoryOfTheirOwn(t *testing.T) {
	dir := t.TempDir()
	s := newScene(t, 1, func(o *replica.BackupOptions) { o.BufferDir = dir })
	x := newText(logID, 5).batch(10, 3, false)
	s.fill(s.connect("b1", logID), x, x.end, roster(1, 9, 5))
	s.hosts["b1"].restart()
	if got := s.one("b1"); got.End != uint32(x.end) || len(files(t, dir)) == 0 {
		t.Fatalf("got %+v and files %v", got, files(t, dir))
	}
}
