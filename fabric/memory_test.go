package fabric_test

import (
	"os"
	"path/filepath"
	"testing"

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
