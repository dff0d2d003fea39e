package bench

import (
	"bufio"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"
)

// Machine says where a result was taken.
type Machine struct {
	CPU         string `json:"cpu"`
	Cores       int    `json:"cores"`
	MemoryBytes int64  `json:"memory_bytes"`
	Kernel      string `json:"kernel"`
	Go          string `json:"go"`
	Commit      string `json:"commit"`
}

func thisMachine() Machine {
	var u unix.Utsname
	_ = unix.Uname(&u) // empty where it fails
	var si unix.Sysinfo_t
	_ = unix.Sysinfo(&si)
	return Machine{
		CPU:         cpuModel(),
		Cores:       runtime.NumCPU(),
		MemoryBytes: int64(si.Totalram) * int64(si.Unit),
		Kernel:      unix.ByteSliceToString(u.Release[:]),
		Go:          runtime.Version(),
		Commit:      commit(),
	}
}

func cpuModel() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// commit is what the toolchain recorded in the binary; where it recorded
// nothing (go run does not), what the working directory has checked out.
func commit() string {
	revision, modified := "", false
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				revision = s.Value
			case "vcs.modified":
				modified = s.Value == "true"
			}
		}
	}
	if revision == "" {
		out, err := exec.Command("git", "rev-parse", "HEAD").Output()
		if err != nil {
			return "unknown"
		}
		changes, err := exec.Command("git", "status", "--porcelain", "--untracked-files=no").Output()
		revision, modified = strings.TrimSpace(string(out)), err != nil || len(changes) > 0
	}
	if revision = revision[:min(len(revision), 12)]; modified {
		revision += " with changes"
	}
	return revision
}

// commandLine is how to repeat this run, with ostro for wherever the binary
// lies.
func commandLine(args []string) string {
	words := []string{"ostro"}
	for _, a := range args[1:] {
		if a == "" || strings.ContainsAny(a, " \t\"'$&|;<>()*?\\`") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}
