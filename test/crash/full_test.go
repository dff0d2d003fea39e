package crash

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/test/harness"
)

// insideVar tells the test binary that it runs in a mount namespace of its own,
// and where the program under test is.
const insideVar = "OSTRO_CRASH_INSIDE"

// inNamespace runs the calling test again where it may mount a file system that
// nobody else sees and that ends with the process. It needs no root.
func inNamespace(t *testing.T) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), insideVar+"="+binary, "TMPDIR="+scratch)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("in a mount namespace: %v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// smallDisk mounts a file system of so many bytes.
func smallDisk(t *testing.T, bytes int) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprint("size=", bytes)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// fullDisk is a server whose disk runs full.
type fullDisk struct {
	t      *testing.T
	dir    string
	args   []string
	server *harness.Server
	conn   *harness.Conn
	kept   map[string]string // acknowledged
	next   int
}

func (f *fullDisk) start() {
	f.t.Helper()
	f.server = harness.Launch(f.t, binary, append([]string{"--dir", filepath.Join(f.dir, "data")}, f.args...)...)
	if err := f.server.Ready(); err != nil {
		f.t.Fatal(err)
	}
	c, err := f.server.Dial()
	if err != nil {
		f.t.Fatal(err)
	}
	f.conn = c
}

func (f *fullDisk) do(args ...string) string {
	f.t.Helper()
	v, err := f.conn.Do(args...)
	if err != nil {
		f.t.Fatalf("%s: %v\n%s", args[0], err, tail(f.server.Log(), 4000))
	}
	return harness.Text(v)
}

// set writes a new key, and returns the answer.
func (f *fullDisk) set() string {
	f.t.Helper()
	k := fmt.Sprintf("key:%d", f.next)
	v := strings.Repeat(k+" ", 300)
	f.next++
	reply := f.do("SET", k, v)
	if reply == "OK" {
		f.kept[k] = v
	}
	return reply
}

// fill writes until a write is refused, and returns why.
func (f *fullDisk) fill() string {
	f.t.Helper()
	for end := time.Now().Add(harness.Patience); time.Now().Before(end); {
		if reply := f.set(); reply != "OK" {
			return reply
		}
	}
	f.t.Fatal("the disk does not run full")
	return ""
}

// untilOK writes until a write is taken.
func (f *fullDisk) untilOK() {
	f.t.Helper()
	reply := ""
	for end := time.Now().Add(harness.Patience); time.Now().Before(end); {
		if reply = f.set(); reply == "OK" {
			return
		}
	}
	f.t.Fatalf("there is room again, but writes are refused: %s\n%s", reply, tail(f.server.Log(), 4000))
}

// untilINFO waits until INFO has a line: what is told there is found out in the background.
func (f *fullDisk) untilINFO(line string) {
	f.t.Helper()
	await.True(f.t, "INFO has "+line, func() bool { return strings.Contains(f.do("INFO", "persistence"), line) })
}

// verify reads everything: what was acknowledged is there, and nothing else.
func (f *fullDisk) verify() {
	f.t.Helper()
	d, err := readAll(f.conn, "0")
	if err != nil {
		f.t.Fatal(err)
	}
	for k, v := range f.kept {
		if d.keys[k].value != v {
			f.t.Fatalf("%s holds %s, want %s", k, brief(d.keys[k].value), brief(v))
		}
	}
	if len(d.keys) != len(f.kept) {
		f.t.Fatalf("%d keys are there, %d writes were acknowledged", len(d.keys), len(f.kept))
	}
}

// filler takes space on the disk that can be given back.
func (f *fullDisk) filler(name string, bytes int) (remove func()) {
	f.t.Helper()
	name = filepath.Join(f.dir, name)
	if err := os.WriteFile(name, make([]byte, bytes), 0o600); err != nil {
		f.t.Fatal(err)
	}
	return func() {
		if err := os.Remove(name); err != nil {
			f.t.Fatal(err)
		}
	}
}

func TestAFullDiskRefusesWritesAndLosesNothing(t *testing.T) {
	if os.Getenv(insideVar) == "" {
		inNamespace(t)
		return
	}
	for _, durability := range []string{"everysec", "always"} {
		f := &fullDisk{t: t, dir: smallDisk(t, 12<<20), kept: map[string]string{}}
		f.args = []string{"--durability", durability, "--segment-size", "256KiB", "--memory-limit", "4MiB"}
		free, freeLittle := f.filler("filler", 4<<20), f.filler("little", 64<<10)
		f.start()
		if reply := f.fill(); !strings.Contains(reply, "no space left") || !strings.Contains(reply, "free space") {
			t.Fatalf("%s: a full disk is told as %q", durability, reply)
		}
		f.verify()
		f.untilINFO("aof_last_write_status:err")
		if !strings.Contains(f.server.Log(), "no room for another segment") {
			t.Fatalf("%s: the log says nothing of a full disk:\n%s", durability, tail(f.server.Log(), 4000))
		}

		f.server.Kill() // It is as full for the next one.
		f.start()
		f.verify()
		if reply := f.fill(); !strings.HasPrefix(reply, "-") {
			t.Fatalf("%s: got %q", durability, reply)
		}
		if err := f.server.Terminate(); err != nil { // There is no room to save the index, nor need for it.
			t.Fatalf("%s: %v", durability, err)
		}
		f.start()
		f.verify()
		free()
		f.untilOK()
		f.untilINFO("aof_last_write_status:ok")
		f.fill()
		f.verify()
		got := f.do("FLUSHALL")
		if strings.Contains(got, "no space left") { // It needs a few kilobytes.
			f.verify()
			freeLittle()
			got = f.do("FLUSHALL")
		}
		if got != "OK" {
			t.Fatalf("%s: FLUSHALL on a full disk: %s", durability, got)
		}
		clear(f.kept)
		f.untilOK()
		for range 200 {
			f.untilOK()
		}
		f.server.Kill()
		f.start()
		f.verify()
		f.server.Kill()
		t.Logf("%s: %d writes, %d of them kept at the end", durability, f.next, len(f.kept))
	}
}

func TestADiskFullOfGarbageIsCleanedByItself(t *testing.T) {
	if os.Getenv(insideVar) == "" {
		inNamespace(t)
		return
	}
	f := &fullDisk{t: t, dir: smallDisk(t, 12<<20), kept: map[string]string{}}
	f.args = []string{"--segment-size", "256KiB"}
	f.start()
	refused := 0
	for n := range 20_000 { // Of some kilobytes each: the disk's size several times.
		k := n * 7919 % 1500
		f.next = k
		for f.set() != "OK" {
			f.next = k
			refused++
		}
	}
	f.verify()
	f.server.Kill()
	f.start()
	f.verify()
	t.Logf("%d writes were refused on the way", refused)
}
