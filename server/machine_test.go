package server

import (
	"testing"
	"testing/fstest"
)

func TestTheSmallestLimitOfMachineAndControlGroupsCounts(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	meminfo := file("MemTotal:        8388608 kB\nMemFree: 1 kB\n")
	for _, c := range []struct {
		name  string
		files fstest.MapFS
		want  Size
	}{
		{"the machine alone", fstest.MapFS{"proc/meminfo": meminfo}, 8 << 30},
		{"a group without a limit", fstest.MapFS{
			"proc/meminfo": meminfo, "proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/b/memory.max": file("max\n"),
		}, 8 << 30},
		{"a group of our own", fstest.MapFS{
			"proc/meminfo": meminfo, "proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/b/memory.max": file("1073741824\n"),
		}, 1 << 30},
		{"a parent's", fstest.MapFS{
			"proc/meminfo": meminfo, "proc/self/cgroup": file("0::/a/b\n"),
			"sys/fs/cgroup/a/memory.max": file("536870912\n"), "sys/fs/cgroup/a/b/memory.max": file("1073741824\n"),
		}, 512 << 20},
		{"a container's root", fstest.MapFS{
			"proc/meminfo": meminfo, "proc/self/cgroup": file("0::/../../kubepods/x\n"), "sys/fs/cgroup/memory.max": file("268435456"),
		}, 256 << 20},
		{"version 1", fstest.MapFS{
			"proc/meminfo": meminfo, "proc/self/cgroup": file("5:cpu:/x\n4:memory:/docker/y\n"),
			"sys/fs/cgroup/memory/docker/y/memory.limit_in_bytes": file("134217728"),
		}, 128 << 20},
		{"a limit above the machine's memory", fstest.MapFS{
			"proc/meminfo": meminfo, "proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("9223372036854771712"),
		}, 8 << 30},
		{"nothing to read", fstest.MapFS{}, 1 << 30},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := machineMemory(c.files); got != c.want {
				t.Fatalf("got %s, want %s", got, c.want)
			}
		})
	}
}
