package functions

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/ostrodb/ostro/examples/functions"
	"github.com/ostrodb/ostro/tenant/extension"
	"github.com/ostrodb/ostro/tenant/extension/local"
	"github.com/ostrodb/ostro/tenant/extension/wasm"
)

var examples = []string{"aggregate", "rank", "limiter", "tree", "tao", "topk"}

// firstCall is a call of each example that needs no data.
var firstCall = map[string][]any{
	"aggregate": nil,
	"rank":      {"rank_count", "b"},
	"limiter":   {"peek", "u", 10, 10},
	"tree":      {"tree_get", "t", "k"},
	"tao":       {"assoc_count", "g", 1, 7},
	"topk":      {"topk", "doc:", 1, vectorOf(1)},
}

// BenchmarkFirstCall is what a restarted server does at the first call of a function: check and rewrite the module, load
// what was compiled from the cache, make an instance, call.
func BenchmarkFirstCall(b *testing.B) {
	for _, name := range examples {
		code, err := functions.Module(name)
		if err != nil {
			b.Fatal(err)
		}
		for _, cached := range []bool{true, false} {
			b.Run(fmt.Sprintf("%s/cached=%v", name, cached), func(b *testing.B) {
				dir := b.TempDir()
				var best time.Duration
				round := func() time.Duration {
					if !cached {
						dir = b.TempDir()
					}
					r := newBenchRuntime(b, extension.Options{CacheDir: dir})
					start := time.Now()
					m, err := r.Compile(b.Context(), code, extension.DefaultLimits())
					if err != nil {
						b.Fatal(err)
					}
					p := benchPool(b, m)
					callFirst(b, name, p)
					took := time.Since(start)
					p.Close()
					_ = r.Close(b.Context())
					return took
				}
				round()
				for b.Loop() {
					if took := round(); best == 0 || took < best {
						best = took
					}
				}
				b.ReportMetric(float64(best.Microseconds())/1000, "best-ms")
			})
		}
	}
}

// BenchmarkFootprint has functions of many tenants, each a module that is like no other, with an idle instance, and
// reports what one of each takes of the process' memory.
func BenchmarkFootprint(b *testing.B) {
	const tenants, each = 64, 10
	for _, name := range examples {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				r := newBenchRuntime(b, extension.Options{})
				code, err := functions.Module(name)
				if err != nil {
					b.Fatal(err)
				}
				base := resident(b)
				var modules []*extension.Module
				for i := range tenants * each {
					m, err := r.Compile(b.Context(), distinct(b, code, i), extension.DefaultLimits())
					if err != nil {
						b.Fatal(err)
					}
					modules = append(modules, m)
				}
				compiled := resident(b)
				var pools []*extension.Pool
				for _, m := range modules {
					pools = append(pools, benchPool(b, m))
					callFirst(b, name, pools[len(pools)-1])
				}
				idle := resident(b)
				for _, p := range pools {
					p.Close()
				}
				_ = r.Close(b.Context())
				b.ReportMetric(float64(compiled-base)/float64(len(modules)), "bytes/module")
				b.ReportMetric(float64(idle-compiled)/float64(len(pools)), "bytes/instance")
			}
		})
	}
}

// distinct is the same module with a global of another value.
func distinct(b *testing.B, code []byte, n int) []byte {
	m, err := wasm.Decode(code)
	if err != nil {
		b.Fatal(err)
	}
	m.Globals = append(m.Globals, wasm.Global{GlobalType: wasm.GlobalType{Type: wasm.I32}, Init: wasm.Const{Instr: wasm.Instr{Op: wasm.I32Const, A: uint64(n)}}})
	return m.Encode()
}

func newBenchRuntime(b *testing.B, opts extension.Options) *extension.Runtime {
	r, err := extension.NewRuntime(context.Background(), opts)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

func benchPool(b *testing.B, m *extension.Module) *extension.Pool {
	p, err := m.NewPool(extension.DefaultLimits(), extension.PoolOptions{})
	if err != nil {
		b.Fatal(err)
	}
	return p
}

func callFirst(b *testing.B, name string, p *extension.Pool) {
	s := local.New(nil)
	inv := invocation("aggregate", "list")
	if c := firstCall[name]; c != nil {
		inv = invocation(c[0].(string), c[1].(string), c[2:]...)
	} else {
		put(s, "list", "")
	}
	inv.Store = s
	if _, err := p.Call(inv); err != nil {
		b.Fatal(err)
	}
}

// resident is how much memory the process has, when nothing is left to collect.
func resident(b *testing.B) int64 {
	debug.FreeOSMemory()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Skip(err)
	}
	var kb int64
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	if _, err := fmt.Sscan(rest, &kb); err != nil {
		b.Fatal(err)
	}
	return kb << 10
}
