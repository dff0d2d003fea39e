package replica_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/cluster/replica"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/internal/await"
)

// A disk that is really full: this test runs once more in a process of its own, with a
// small file system that nobody else sees.
func TestAFullDiskRefusesAndLosesNothing(t *testing.T) {
	dir := os.Getenv("OSTRO_TEST_SMALL_DISK")
	if dir == "" {
		inNamespace(t)
		return
	}
	check(t, unix.Mount("small", dir, "tmpfs", 0, "size=1536k"))
	s := newScene(t, 0)
	h := &host{s: s, node: "b1", dir: filepath.Join(dir, "b1")}
	s.hosts["b1"] = h
	h.start()
	t.Cleanup(h.stop)
	l := s.connect("b1", logID)

	// Open replicas until there is no room.
	var texts []*text
	var ids []record.SegmentID
	var refused error
	for id := record.SegmentID(1); refused == nil; id++ {
		a, err := s.open("b1", openRequest(id, roster(uint64(id), 0, append(ids, id)...)))
		if refused = err; err != nil {
			break
		}
		ids = append(ids, id)
		x := closedText(logID, id, record.BatchID(id)*100)
		if st := l.write(a.Region.At(0), x.bytes[:x.end]); st != fabric.OK {
			t.Fatal(st)
		}
		texts = append(texts, x)
	}
	if !errors.Is(refused, replica.ErrFull) || !bytes.Contains([]byte(refused.Error()), []byte("no space left")) || len(ids) < 3 {
		t.Fatalf("after %d replicas: %v", len(ids), refused)
	}
	// A buffer that was being made ahead fails, too, and leaves the room that it had: what is put then has it.
	var fills []string
	put := 0
	for full := false; !full; {
		fills = append(fills, filepath.Join(dir, fmt.Sprint("fill", put)))
		fillDisk(t, fills[put])
		id := record.SegmentID(90 + put)
		err := s.put("b1", closedText(logID, id, record.BatchID(id)*100), roster(uint64(id), 0, append(ids, id)...))
		switch full = errors.Is(err, replica.ErrFull); {
		case full:
		case err != nil, put == 3:
			t.Fatalf("put %d on a full disk: %v", put, err)
		default:
			put, ids = put+1, append(ids, id)
		}
	}

	// Closing works; the replicas stay where they are.
	for _, x := range texts {
		check(t, s.call("b1", replica.MethodClose, replica.CloseRequest{Log: logID, Segment: x.id, Closing: x.closing()}, nil, nil))
	}
	await.True(t, "a flush fails", func() bool { return h.Metrics().FlushErrors > 0 })
	same := func() {
		t.Helper()
		for _, x := range texts {
			if b := must(s.whole("b1", x.id))(t); !bytes.Equal(b, x.bytes[:x.end]) {
				t.Fatalf("segment %d has other bytes", x.id)
			}
		}
	}
	same()
	// A fence needs no room, not even that which is kept for it, and it holds.
	if err := os.Remove(filepath.Join(dir, "b1", "savings")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	last := filepath.Join(dir, "fill")
	fills = append(fills, last)
	fillDisk(t, last)
	if a := s.survey("b1", true); !a.Retired || len(a.Replicas) != len(texts)+put {
		t.Fatalf("got %+v", a)
	}
	h.restart()
	if a := s.survey("b1", false); !a.Retired || len(a.Replicas) != len(texts)+put {
		t.Fatalf("got %+v", a)
	}
	same()
	// Room makes it go on.
	for _, fill := range fills {
		check(t, os.Remove(fill))
	}
	await.True(t, "all are flushed", func() bool { return h.Metrics().BuffersBusy == 0 })
	same()
}

// fillDisk leaves no block free.
func fillDisk(t *testing.T, path string) {
	t.Helper()
	f := must(os.Create(path))(t)
	defer f.Close()
	for n := 1 << 20; n > 0; {
		if _, err := f.Write(make([]byte, n)); err != nil {
			n /= 2
		}
	}
}

// inNamespace runs the test again where it may mount.
func inNamespace(t *testing.T) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), "OSTRO_TEST_SMALL_DISK="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil && bytes.Contains(out, []byte("--- PASS")):
		t.Logf("%s", out)
	case err != nil && !errors.As(err, &exit):
		t.Skipf("this system lets nobody have a file system of their own: %v", err)
	default:
		t.Fatalf("%v\n%s", err, out)
	}
}
