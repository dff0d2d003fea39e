package fabric_test

import (
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/ostrodb/ostro/fabric"
)

func TestMemoryCannotShrinkUnderANIC(t *testing.T) {
	m, err := fabric.NewMemory(5000)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if len(m.Bytes()) != 8192 || !fabric.Sealed(m.File()) {
		t.Fatalf("%d bytes, sealed %v", len(m.Bytes()), fabric.Sealed(m.File()))
	}
	if err := m.File().Truncate(0); err == nil {
		t.Fatal("sealed memory was truncated")
	}
}

func TestAMappedFileKeepsWhatIsStored(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(8192); err != nil {
		t.Fatal(err)
	}
	for _, bad := range [][2]int{{1, 100}, {0, 8193}, {4096, 4097}, {0, 0}, {16384, 1}} {
		if _, err := fabric.MapFile(f, int64(bad[0]), bad[1]); err == nil {
			t.Errorf("%d bytes at %d were mapped", bad[1], bad[0])
		}
	}
	m, err := fabric.MapFile(f, 4096, 4096)
	if err != nil {
		t.Fatal(err)
	}
	copy(m.Bytes(), "kept")
	if err := m.Close(); err != nil || m.Close() != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path); string(got[4096:4100]) != "kept" {
		t.Fatalf("the file has %q", got[4096:4100])
	}
}

func TestALargeMappingLiesInMemoryAsInItsFile(t *testing.T) {
	const large, off, bytes = 2 << 20, 64 << 10, 5<<20 + 4096
	path := filepath.Join(t.TempDir(), "f")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(off + bytes); err != nil {
		t.Fatal(err)
	}
	m, err := fabric.MapFile(f, off, bytes)
	if err != nil {
		t.Fatal(err)
	}
	m.PreferLarge()
	b := m.Bytes()
	if at := uintptr(unsafe.Pointer(&b[0])); at%large != off || len(b) != bytes || m.Offset() != off {
		t.Fatalf("%d bytes at %x for offset %d", len(b), at, m.Offset())
	}
	b[0], b[bytes-1] = 1, 2
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range got {
		if want := map[int]byte{off: 1, off + bytes - 1: 2}[i]; i%4096 == 0 || i%4096 == 4095 {
			if c != want {
				t.Fatalf("byte %d of the file is %d, want %d", i, c, want)
			}
		}
	}
}
