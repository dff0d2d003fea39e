package extension_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/tenant/extension"
)

// constant is a store of one value, so that what is measured is the call.
type constant struct{ value []byte }

func (s constant) Get(_ uint32, _, buf []byte) (extension.Value, extension.Status) {
	copy(buf, s.value)
	return extension.Value{Len: len(s.value), Version: 1}, extension.OK
}

func (constant) Scan(uint32, uint64, []byte, func(key, value []byte) bool) (uint64, extension.Status) {
	return 0, extension.OK
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
