package harness

import (
	"flag"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// insideVar tells a test binary that it runs in namespaces of its own.
const insideVar = "OSTRO_ISOLATED"

// Isolated runs the calling test again, in a process that has a network and mounts of its own
// which nobody else sees and which end with it. It returns true in that process; in the other one
// it returns false when the test is over. Environment is for the inner one: NAME=VALUE.
//
// It takes root, or a kernel that lets everybody have user namespaces.
func Isolated(t *testing.T, environment ...string) bool {
	t.Helper()
	if os.Getenv(insideVar) != "" {
		return true
	}
	for _, tool := range []string{"ip", "nft"} {
		if _, err := exec.LookPath(tool); err != nil {
			skipOrFail(t, "this test cuts networks and needs "+tool+" (Debian: iproute2 nftables)")
		}
	}
	args := []string{"-test.run=^" + t.Name() + "$", "-test.v", "-test.timeout=0"}
	cmd := exec.Command(os.Args[0], append(args, ownFlags()...)...)
	cmd.Env = append(append(os.Environ(), insideVar+"=1"), environment...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if testing.Verbose() {
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr // It may go on for long.
	}
	if err := cmd.Start(); err != nil {
		skipOrFail(t, "this test needs namespaces of its own: run it as root ("+err.Error()+")")
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("in namespaces of its own: %v\n%s", err, out.String())
	}
	return false
}

// ownFlags are the flags that are not go test's.
func ownFlags() (flags []string) {
	flag.Visit(func(f *flag.Flag) {
		if !strings.HasPrefix(f.Name, "test.") {
			flags = append(flags, "-"+f.Name+"="+f.Value.String())
		}
	})
	return flags
}

// skipOrFail skips on a developer's machine that lacks something. CI lacks nothing.
func skipOrFail(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}
