package extension_test

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/tenant/extension"
)

// constant is a store of one value, so that what is measured is the call.
type constant struct{ value []byte }

func (s constant) Get(_ uint32, _, buf []byte, v *extension.Value) extension.Status {
	v.Len, v.Version = copy(buf, s.value), 1
	return extension.OK
}

func (constant) Scan(uint32, uint64, []byte, func(key, value []byte) bool) (uint64, int, extension.Status) {
	return 0, 0, extension.OK
}

func (constant) Commit(*extension.Changes) error { return nil }

// BenchmarkCall is one call on a pooled instance.
func BenchmarkCall(b *testing.B) {
	m := compile(b, "work")
	for _, fresh := range []bool{false, true} {
		p := poolOf(b, m, extension.DefaultLimits(), extension.PoolOptions{Fresh: fresh})
		for _, fn := range []string{"empty", "get", "aggregate", "incr"} {
			b.Run(fmt.Sprintf("%s/fresh=%v", fn, fresh), func(b *testing.B) {
				inv := &extension.Invocation{Function: fn, Keys: [][]byte{[]byte("key00001")}, Store: constant{[]byte(strings.Repeat("key00001", 4))}}
				b.ReportAllocs()
				for b.Loop() {
					res, err := p.Call(inv)
					if err != nil {
						b.Fatal(err)
					}
					inv.Into = res.Response[:0]
				}
			})
		}
	}
}

// BenchmarkInstance makes an instance and throws it away.
func BenchmarkInstance(b *testing.B) {
	m := compile(b, "work")
	p := poolOf(b, m, extension.DefaultLimits(), extension.PoolOptions{})
	for b.Loop() {
		if err := p.Warm(1); err != nil {
			b.Fatal(err)
		}
		p.Trim(0)
	}
}

// BenchmarkCompile checks, rewrites and compiles a small module.
func BenchmarkCompile(b *testing.B) {
	code := readGuest(b, "work")
	for _, cached := range []bool{false, true} {
		b.Run(fmt.Sprintf("cached=%v", cached), func(b *testing.B) {
			opts := extension.Options{}
			if cached {
				opts.CacheDir = b.TempDir()
			}
			for b.Loop() {
				r := newRuntime(b, opts)
				m, err := r.Compile(b.Context(), code, extension.DefaultLimits())
				if err != nil {
					b.Fatal(err)
				}
				_ = m.Close(b.Context())
			}
		})
	}
}

// BenchmarkGet is a call with one get, with arguments and response by calls of the host and by the module's area, and
// by many tenants in turn, whose instances are then not in the nearest cache.
func BenchmarkGet(b *testing.B) {
	for _, guest := range []string{"work", "area"} {
		m := compile(b, guest)
		for _, tenants := range []int{1, 1024} {
			b.Run(fmt.Sprintf("%s/tenants=%d", guest, tenants), func(b *testing.B) {
				pools := make([]*extension.Pool, tenants)
				for i := range pools {
					pools[i] = poolOf(b, m, extension.DefaultLimits(), extension.PoolOptions{})
				}
				inv := &extension.Invocation{Function: "get", Keys: [][]byte{[]byte("key00001")}, Store: constant{[]byte(strings.Repeat("v", 100))}}
				i := 0
				round := func() {
					res, err := pools[i&(tenants-1)].Call(inv)
					if err != nil {
						b.Fatal(err)
					}
					inv.Into = res.Response[:0]
					i++
				}
				for range 2 * tenants {
					round()
				}
				b.ReportAllocs()
				before := cpuTime(b)
				for b.Loop() {
					round()
				}
				b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

// cpuTime is what this process has used of processors: where a machine is shared it says more than a clock.
func cpuTime(b *testing.B) int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts); err != nil {
		b.Fatal(err)
	}
	return ts.Nano()
}
