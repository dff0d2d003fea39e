package device_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/engine/device"
)

const segmentBytes = 1 << 20

func init() {
	roles["store"] = roleStore
	roles["lock"] = roleLock
}

// roleStore stores through a mapping without any sync.
func roleStore(args []string) {
	d, err := device.OpenDisk(args[0])
	if err != nil {
		panic(err)
	}
	f, err := d.Create(1, segmentBytes)
	if err != nil {
		panic(err)
	}
	m, err := f.Map()
	if err != nil {
		panic(err)
	}
	for i := range m {
		m[i] = byte(i * 7)
	}
	report("stored")
	untilKilled()
}

func TestAStoreSurvivesKill9(t *testing.T) {
	dir := t.TempDir()
	p := start(t, "store", dir)
	p.line(t)
	p.kill()
	f, err := openDisk(t, dir).Open(1)
	must(t, err)
	defer f.Close()
	m, err := f.MapRead()
	must(t, err)
	if len(m) != segmentBytes {
		t.Fatalf("the segment has %d bytes, want %d", len(m), segmentBytes)
	}
	for i, got := range m {
		if got != byte(i*7) {
			t.Fatalf("byte %d is %d, want %d", i, got, byte(i*7))
		}
	}
}

// roleLock holds the lock until it is killed.
func roleLock(args []string) {
	d, err := device.OpenDisk(args[0])
	if err != nil {
		panic(err)
	}
	if _, err := d.Lock(); err != nil {
		panic(err)
	}
	report("%d", os.Getpid())
	untilKilled()
}

func TestALockedDirectoryNamesItsUserAndIsFreeAfterKill9(t *testing.T) {
	dir := t.TempDir()
	p := start(t, "lock", dir)
	pid := p.line(t)
	d := openDisk(t, dir)
	_, err := d.Lock()
	if !errors.Is(err, device.ErrLocked) || !strings.Contains(err.Error(), "process "+pid) || !strings.Contains(err.Error(), dir) {
		t.Fatalf("got %v, want ErrLocked that names %s and process %s", err, dir, pid)
	}
	p.kill()
	release, err := d.Lock()
	must(t, err)
	release()
}

func TestLockRemovesUnfinishedWritesOfTheDeadOnly(t *testing.T) {
	dir := t.TempDir()
	d := openDisk(t, dir)
	must(t, d.WriteMeta("config", []byte("kept")))
	left, err := d.CreateStream("config") // Its process dies: neither committed nor closed.
	must(t, err)
	t.Cleanup(func() { _ = left.Close() })
	must(t, os.WriteFile(filepath.Join(dir, "segments", "0000000000000001.seg.123.tmp"), nil, 0o600))
	d = openDisk(t, dir)
	release, err := d.Lock()
	must(t, err)
	defer release()
	want := []string{"LOCK", "config", "segments"}
	if got := names(t, dir); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("left in the directory: %q, want %q", got, want)
	}
	if got := names(t, filepath.Join(dir, "segments")); len(got) != 0 {
		t.Errorf("left among the segments: %q", got)
	}
}

func TestAFailedLockRemovesNothing(t *testing.T) {
	dir := t.TempDir()
	d := openDisk(t, dir)
	release, err := d.Lock()
	must(t, err)
	defer release()
	w, err := d.CreateStream("config")
	must(t, err)
	defer w.Close()
	if _, err := openDisk(t, dir).Lock(); !errors.Is(err, device.ErrLocked) {
		t.Fatalf("got %v", err)
	}
	must(t, w.Commit())
}

func TestStrangeFilesAreNoSegments(t *testing.T) {
	dir := t.TempDir()
	d := openDisk(t, dir)
	for _, name := range []string{"1.seg", "000000000000000A.seg", "+00000000000000a.seg", "0000000000000001.seg.9.tmp", "lost+found", "00000000000000001.seg"} {
		must(t, os.WriteFile(filepath.Join(dir, "segments", name), nil, 0o600))
	}
	if ids, err := d.List(); err != nil || len(ids) != 0 {
		t.Fatalf("listed %x, %v", ids, err)
	}
}

func TestFilesAreForTheOwnerOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	d := openDisk(t, dir)
	f, err := d.Create(1, 4096)
	must(t, err)
	must(t, f.Close())
	must(t, d.WriteMeta("config", nil))
	release, err := d.Lock()
	must(t, err)
	defer release()
	must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		must(t, err)
		info, err := e.Info()
		must(t, err)
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return nil
	}))
}

func TestAFullDiskIsErrFullThatTellsWhatToDoAndLeavesNothing(t *testing.T) {
	d := fullDisk(t)
	_, err := d.Create(1, 64<<20)
	if !errors.Is(err, device.ErrFull) {
		t.Fatalf("create: %v, want ErrFull", err)
	}
	for _, part := range []string{d.Dir(), "--disk-limit", "0000000000000001.seg"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not mention %s", err, part)
		}
	}
	if left := names(t, filepath.Join(d.Dir(), "segments")); len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}
}

// fullDisk has less than 64 MiB of room. Who may mount gets a real small file
// system; for others the system call is made to answer as it would there.
func fullDisk(t *testing.T) *device.Disk {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4m,mode=0700"); err == nil {
		t.Cleanup(func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
		return openDisk(t, dir)
	}
	d := openDisk(t, dir)
	d.FailSystem(func(*os.File, int64) error { return unix.ENOSPC }, nil)
	return d
}

func TestAQuotaIsErrFull(t *testing.T) {
	d := openDisk(t, t.TempDir())
	d.FailSystem(func(*os.File, int64) error { return unix.EDQUOT }, nil)
	if _, err := d.Create(1, segmentBytes); !errors.Is(err, device.ErrFull) {
		t.Fatalf("got %v, want ErrFull", err)
	}
}

func TestAFailedSyncHoldsForEveryHandleUntilRemoval(t *testing.T) {
	d := openDisk(t, t.TempDir())
	healthy := false
	d.FailSystem(nil, func(int) error {
		if healthy {
			return nil
		}
		return unix.EIO
	})
	f, err := d.Create(1, segmentBytes)
	must(t, err)
	defer f.Close()
	first := f.Sync()
	if !errors.Is(first, unix.EIO) || !strings.Contains(first.Error(), f.Path()) {
		t.Fatalf("got %v", first)
	}
	healthy = true
	again, err := d.Open(1)
	must(t, err)
	defer again.Close()
	for _, err := range []error{f.Sync(), again.Sync()} {
		if err != first {
			t.Errorf("a later sync says %v, want the first failure", err)
		}
	}
	must(t, d.Remove(1))
	fresh, err := d.Create(1, segmentBytes)
	must(t, err)
	defer fresh.Close()
	must(t, fresh.Sync())
}

func TestMapBringsEveryPageIn(t *testing.T) {
	d := openDisk(t, t.TempDir())
	f, err := d.Create(1, segmentBytes)
	must(t, err)
	defer f.Close()
	must(t, f.DropCache())
	m, err := f.Map()
	must(t, err)
	if got, want := resident(t, m), segmentBytes/os.Getpagesize(); got != want {
		t.Fatalf("%d of %d pages are there", got, want)
	}
}

func TestTouchChangesNothing(t *testing.T) {
	m := []byte("some bytes that a mapping already holds")
	device.Touch(m, true)
	device.Touch(m, false)
	if string(m) != "some bytes that a mapping already holds" {
		t.Fatalf("now %q", m)
	}
}

// TestNothingStaysOpen runs the life of a device many times and counts
// descriptors and mappings.
func TestNothingStaysOpen(t *testing.T) {
	dir := t.TempDir()
	live := func() {
		d := openDisk(t, dir)
		release, err := d.Lock()
		must(t, err)
		defer release()
		f, err := d.Create(1, segmentBytes)
		must(t, err)
		_, err = f.Map()
		must(t, err)
		_, err = d.Create(1, segmentBytes)
		if !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
		must(t, f.Close())
		must(t, d.WriteMeta("config", nil))
		w, err := d.CreateStream("config")
		must(t, err)
		must(t, w.Abort())
		must(t, d.Remove(1))
	}
	live()
	files, maps := openFiles(t), mappingsOf(t, dir)
	for range 20 {
		live()
	}
	if got := openFiles(t); got != files {
		t.Errorf("%d descriptors are open, %d were before", got, files)
	}
	if got := mappingsOf(t, dir); got != maps || maps != 0 {
		t.Errorf("%d mappings are left, %d were before", got, maps)
	}
}

func openFiles(t *testing.T) int { return len(names(t, "/proc/self/fd")) }

func mappingsOf(t *testing.T, dir string) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	must(t, err)
	return strings.Count(string(maps), dir)
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// resident counts the pages of a mapping that are in memory.
func resident(t *testing.T, m []byte) int {
	t.Helper()
	pages := make([]byte, (len(m)+os.Getpagesize()-1)/os.Getpagesize())
	must(t, mincore(m, pages))
	n := 0
	for _, p := range pages {
		n += int(p & 1)
	}
	return n
}

func ExampleOpenDisk() {
	dir, _ := os.MkdirTemp("", "ostro")
	defer os.RemoveAll(dir)
	d, err := device.OpenDisk(dir)
	if err != nil {
		panic(err)
	}
	f, err := d.Create(1, 8<<20)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	m, err := f.Map()
	if err != nil {
		panic(err)
	}
	copy(m, "survives the process, and after Sync a loss of power")
	fmt.Println(f.Sync(), f.Size())
	// Output: <nil> 8388608
}

func TestOnlyANewSegmentIsFilled(t *testing.T) {
	d := openDisk(t, t.TempDir())
	fill := func(f device.File) { must(t, f.(device.Filler).Fill(func() {})) }
	f, err := d.Create(1, segmentBytes)
	must(t, err)
	fill(f)
	m, err := f.Map()
	must(t, err)
	if i := strings.IndexFunc(string(m), func(c rune) bool { return c != 0 }); i >= 0 || len(m) != segmentBytes {
		t.Fatalf("%d bytes, and byte %d is not zero", len(m), i)
	}
	copy(m[5000:], "kept")
	fill(f)
	if string(m[5000:5004]) != "kept" {
		t.Fatal("a mapped segment was filled")
	}
	must(t, f.Close())
	if f.(device.Filler).Fill(func() {}) == nil {
		t.Fatal("a closed file was filled")
	}
	g, err := d.Open(1)
	must(t, err)
	fill(g)
	written, err := d.Create(2, segmentBytes)
	must(t, err)
	_, err = written.WriteAt([]byte("kept"), 5000)
	must(t, err)
	fill(written)
	for _, f := range []device.File{g, written} {
		got := make([]byte, 4)
		_, err = f.ReadAt(got, 5000)
		must(t, err)
		if string(got) != "kept" {
			t.Fatalf("%s was filled, though it was written to", f.Path())
		}
		must(t, f.Close())
	}
}

func TestWhatIsWrittenPastTheCacheIsInTheSegment(t *testing.T) {
	d := openDisk(t, t.TempDir())
	f, err := d.Create(1, segmentBytes)
	must(t, err)
	defer f.Close()
	whole, err := unix.Mmap(-1, 0, segmentBytes+1, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	must(t, err)
	defer unix.Munmap(whole)
	b := whole[:segmentBytes-100]
	for i := range b {
		b[i] = byte(i>>8 ^ i)
	}
	n, err := f.(device.Direct).WriteDirect(b)
	must(t, err)
	_, err = f.WriteAt(b[n:], int64(n))
	must(t, err)
	must(t, f.Sync())
	got := make([]byte, len(b))
	_, err = f.ReadAt(got, 0)
	must(t, err)
	if !bytes.Equal(got, b) {
		t.Error("the segment has other bytes")
	}
	if _, err := f.(device.Direct).WriteDirect(whole); err == nil {
		t.Error("a segment took more than its size")
	}
}
