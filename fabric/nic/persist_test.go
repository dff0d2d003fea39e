package nic

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/fabric"
)

func TestMemoryAloneHasNoMediumAndAFileOnADiskHas(t *testing.T) {
	mem, err := fabric.NewMemory(4096)
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	if hasMedium(mem.File()) {
		t.Error("memory of no file has a medium")
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "region"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &fs); err != nil || fs.Type == unix.TMPFS_MAGIC {
		t.Skipf("no disk for temporary files here: %v", err)
	}
	if !hasMedium(f) {
		t.Error("a file on a disk has none")
	}
}
