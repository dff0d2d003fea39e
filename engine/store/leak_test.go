package store_test

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
)

func TestMain(m *testing.M) { os.Exit(await.RunToEnd(m)) }

// resources are what a process holds of its system.
type resources struct{ files, mappings, goroutines int }

func held(t *testing.T) (r resources) {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	r.files, r.goroutines = len(files), runtime.NumGoroutine()
	for line := range bytes.Lines(maps) {
		// The Go heap grows and shrinks as it likes; ours are files and what is not named.
		if s := string(line); strings.Contains(s, "ostro-segment") || strings.Contains(s, ".seg") {
			r.mappings++
		}
	}
	return r
}

// addressSpace is how many KiB of address space the process has: a store
// reserves much of it.
func addressSpace(t *testing.T) (kib int) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(b) {
		if n, _ := fmt.Sscanf(string(line), "VmSize: %d kB", &kib); n == 1 {
			return kib
		}
	}
	t.Fatal("/proc/self/status says nothing of VmSize")
	return 0
}

// liveShortly opens a store, uses much of it, and closes it.
func liveShortly(t *testing.T, o store.Options, keys int) {
	t.Helper()
	st, err := store.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	ss, err := st.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	for n := range keys {
		put(t, ss, 0, fmt.Sprint(n%200), strings.Repeat("x", n%900), 0)
	}
	ticket := ss.Seal()
	if err := ss.WaitDurable(ticket); err != nil {
		t.Fatal(err)
	}
	ss.Close()
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAClosedStoreLeavesNothingBehind(t *testing.T) {
	for name, o := range map[string]store.Options{
		"memory":           {SegmentBytes: 4 << 10},
		"checkpoint/spill": {SegmentBytes: 4 << 10, Durability: store.Checkpoint, MemoryBytes: 64 << 10},
		"everysec":         {SegmentBytes: 4 << 10, Durability: store.EverySec},
		"always/spill":     {SegmentBytes: 4 << 10, Durability: store.Always, MemoryBytes: 64 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			var dev *device.Memory
			if name != "memory" {
				dev = device.NewMemory()
				defer dev.Close()
				o.Device = dev
			}
			liveShortly(t, o, 2000) // What the process needs once and for all.
			devFiles := func() int {
				if dev == nil {
					return 0
				}
				ids, err := dev.List()
				if err != nil {
					t.Fatal(err)
				}
				return len(ids)
			}
			before, inDevice := held(t), devFiles()
			space := addressSpace(t)
			for range 10 {
				liveShortly(t, o, 500)
			}
			await.True(t, "all is given back", func() bool {
				now := held(t)
				return now.files-devFiles() <= before.files-inDevice && now.mappings <= before.mappings && now.goroutines <= before.goroutines
			})
			if grown := addressSpace(t) - space; grown > 256<<10 {
				t.Fatalf("%d MiB of address space are gone", grown>>10)
			}
		})
	}
}

func TestAStoreOpensAndClosesAThousandTimes(t *testing.T) {
	dev := device.NewMemory()
	defer dev.Close()
	o := store.Options{SegmentBytes: 4 << 10, Durability: store.EverySec, Device: dev, Heads: 1}
	liveShortly(t, o, 1)
	before := held(t)
	for n := range scale(1000) {
		st, err := store.Open(o)
		if err != nil {
			t.Fatalf("life %d: %v", n, err)
		}
		ss, err := st.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 && n%100 == 0 {
			if got := get(t, ss, 0, "last life"); got != fmt.Sprint(n-1) {
				t.Fatalf("life %d follows %s", n, got)
			}
			await.True(t, "the cleaner has time to come", func() bool { return st.Metrics().LogBytes < 2<<10 })
		}
		if n%10 == 9 {
			put(t, ss, 0, "last life", fmt.Sprint(n), 0)
		}
		ss.Close()
		if err := st.Close(); err != nil {
			t.Fatalf("life %d: %v", n, err)
		}
	}
	ids, err := dev.List()
	if err != nil {
		t.Fatal(err)
	}
	if now := held(t); now.files > before.files+len(ids) || now.mappings > before.mappings {
		t.Fatalf("%+v are held, before %+v", now, before)
	}
}

func TestAStoreThatDoesNotOpenLeavesNothingBehind(t *testing.T) {
	o := store.Options{Durability: store.EverySec, SegmentBytes: 8 << 10, Heads: 1}
	dev := filled(t, o)
	_ = dev.RemoveMeta("index.snapshot")
	damage(t, dev, closedSegment(t, dev, o.SegmentBytes), damageAt)
	o.Device = dev
	if _, err := store.Open(o); err == nil {
		t.Fatal("a damaged store opens")
	}
	before := held(t)
	for range 20 {
		if _, err := store.Open(o); err == nil {
			t.Fatal("a damaged store opens")
		}
		if n := dev.OpenFiles(); n > 0 {
			t.Fatalf("%d segments are still open", n)
		}
	}
	if now := held(t); now.files > before.files || now.mappings > before.mappings {
		t.Fatalf("%+v are held, before %+v", now, before)
	}
	await.True(t, "the last goroutine has ended", func() bool { return runtime.NumGoroutine() <= before.goroutines })
}

func TestClosedSessionsAreForgotten(t *testing.T) {
	st := open(t, store.Options{Durability: store.Always, Device: device.NewMemory()})
	for n := range scale(3000) { // More than there can be at a time.
		ss, err := st.NewSession()
		if err != nil {
			t.Fatalf("session %d: %v", n, err)
		}
		if n%100 == 0 {
			ss.Begin()
			k := ss.Key(0, []byte("key"))
			ss.Put(&k, store.Write{Value: []byte("value")}, nil)
			ticket := ss.Seal()
			ss.End()
			if err := ss.WaitDurable(ticket); err != nil {
				t.Fatal(err)
			}
		}
		ss.Close()
	}
}
