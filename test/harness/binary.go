package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Build builds the ostro binary of the module around the working directory into
// dir, and returns its path.
func Build(dir string) (string, error) {
	binary := filepath.Join(dir, "ostro")
	cmd := exec.Command("go", "build", "-o", binary, "github.com/ostrodb/ostro/cmd/ostro")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the ostro binary: %w\n%s", err, out)
	}
	return binary, nil
}

// ScratchDir makes a directory on a real disk: in the system's place for
// temporary files unless that is memory. The caller removes it.
func ScratchDir(pattern string) (string, error) {
	for _, base := range []string{os.TempDir(), "/var/tmp"} {
		if onDisk(base) {
			return os.MkdirTemp(base, pattern)
		}
	}
	return "", fmt.Errorf("neither %s nor /var/tmp is on a disk: set TMPDIR to a directory that is", os.TempDir())
}

func onDisk(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && st.Type != unix.TMPFS_MAGIC && st.Type != unix.RAMFS_MAGIC
}
