package meter

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

var (
	modules  = flag.Int("modules", 0, "make so many random modules instead of a few")
	fromSeed = flag.Uint64("seed", 0, "make modules from this seed on; 0: from one of the clock")
)

var errBudget = errors.New("budget used up")

// tank gives fuel in slices of a size until a budget is used up.
type tank struct {
	slice, left int64
	given       int64
}

func (k *tank) fill(_ context.Context, stack []uint64) {
	owed := -int64(stack[0])
	grant := owed + k.slice
	if k.left < owed {
		panic(errBudget)
	}
	grant = min(grant, k.left)
	k.left -= grant
	k.given += grant
	stack[0] = uint64(int64(stack[0]) + grant)
}

// pair is a module, as it was and rewritten.
type pair struct {
	runtime wazero.Runtime
	tank    *tank
	mods    [2]api.Module
	codes   [2]wazero.CompiledModule
	round   int
	used    []int64 // by each call of the first round
}

func newPair(tb testing.TB, plain []byte) *pair {
	tb.Helper()
	l := DefaultLimits()
	l.MemoryPages, l.StackBytes = 3, 1<<26
	res, err := Rewrite(plain, l)
	if err != nil {
		tb.Fatalf("rewrite: %v", err)
	}
	ctx := context.Background()
	p := &pair{runtime: wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler()), tank: &tank{}}
	i64 := []api.ValueType{api.ValueTypeI64}
	_, err = p.runtime.NewHostModuleBuilder(HostModule).NewFunctionBuilder().WithGoFunction(api.GoFunc(p.tank.fill), i64, i64).Export(SliceImport).Instantiate(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	for i, code := range [][]byte{plain, res.Module} {
		if p.codes[i], err = p.runtime.CompileModule(ctx, code); err != nil {
			tb.Fatalf("module %d does not compile: %v", i, err)
		}
	}
	return p
}

func (p *pair) close() { _ = p.runtime.Close(context.Background()) }

// renew makes new instances.
func (p *pair) renew(tb testing.TB) {
	ctx := context.Background()
	for i := range p.mods {
		if p.mods[i] != nil {
			_ = p.mods[i].Close(ctx)
		}
		var err error
		if p.mods[i], err = p.runtime.InstantiateModule(ctx, p.codes[i], wazero.NewModuleConfig().WithName("")); err != nil {
			tb.Fatal(err)
		}
	}
}

// outcome is all that can be seen of a call.
type outcome struct {
	results []uint64
	err     string
}

func (p *pair) call(which int, fn string, args []uint64) outcome {
	res, err := p.mods[which].ExportedFunction(fn).Call(context.Background(), args...)
	if err != nil {
		text, _, _ := strings.Cut(err.Error(), "\nwasm stack trace")
		return outcome{nil, text}
	}
	return outcome{res, ""}
}

// same compares, NaN with any other NaN.
func same(types []api.ValueType, a, b outcome) bool {
	if a.err != b.err || len(a.results) != len(b.results) {
		return false
	}
	for i, t := range types {
		x, y := a.results, b.results
		if len(x) == 0 {
			break
		}
		switch t {
		case api.ValueTypeF32:
			fx, fy := float64(api.DecodeF32(x[i])), float64(api.DecodeF32(y[i]))
			if math.IsNaN(fx) && math.IsNaN(fy) {
				continue
			}
		case api.ValueTypeF64:
			if math.IsNaN(api.DecodeF64(x[i])) && math.IsNaN(api.DecodeF64(y[i])) {
				continue
			}
		}
		if x[i] != y[i] {
			return false
		}
	}
	return true
}

// compareAll calls all functions of both and compares results, memory and globals, with large and small slices, and with
// budgets that do not suffice. It returns how many calls it made.
func compareAll(tb testing.TB, plain []byte, r *rand.Rand) int {
	p := newPair(tb, plain)
	defer p.close()
	calls := 0
	small, again := 1+int64(r.IntN(100)), r.Uint64()
	for _, slice := range []int64{1 << 40, small} {
		p.renew(tb)
		p.round++
		r = rand.New(rand.NewPCG(again, 3)) // the same calls
		for i := 0; ; i++ {
			fn := fmt.Sprintf("f%d", i)
			def := p.mods[0].ExportedFunction(fn)
			if def == nil {
				break
			}
			for range callsEach() {
				calls += p.compareOne(tb, fn, def.Definition(), slice, r)
			}
		}
	}
	return calls
}

// callsEach is how often each function is called: compiling takes longer than calls, so that a long run makes many.
func callsEach() int {
	if *modules > 0 {
		return 25
	}
	return 3
}

func (p *pair) compareOne(tb testing.TB, fn string, def api.FunctionDefinition, slice int64, r *rand.Rand) int {
	args := make([]uint64, len(def.ParamTypes()))
	for i, t := range def.ParamTypes() {
		args[i] = uint64(r.IntN(1000)) << (8 * r.IntN(3))
		if t == api.ValueTypeI32 {
			args[i] = uint64(uint32(args[i]))
		}
	}
	*p.tank = tank{slice: slice, left: 1 << 50}
	set(p.mods[0], "g0", 60)
	set(p.mods[1], "g0", 60)
	set(p.mods[0], "g1", 0)
	set(p.mods[1], "g1", 0)
	set(p.mods[1], FuelExport, 0)
	a, b := p.call(0, fn, args), p.call(1, fn, args)
	if !same(def.ResultTypes(), a, b) {
		tb.Fatalf("%s(%x) gives %v, with metering %v", fn, args, a, b)
	}
	p.compareState(tb, fn, a)
	left := int64(p.mods[1].ExportedGlobal(FuelExport).Get())
	if left < -oweMost {
		tb.Fatalf("%s(%x) owes %d units of fuel when it has returned", fn, args, -left)
	}
	used := p.tank.given - left
	if ticks := int64(p.mods[1].ExportedGlobal("g1").Get()); a.err == "" && used+smallMost < ticks {
		// A small function is not charged when the host calls it.
		tb.Fatalf("%s(%x) went through %d loops and functions for %d units of fuel", fn, args, ticks, used)
	}
	if a.err != "" {
		p.renew(tb)
		return 2
	}
	if p.round == 1 {
		p.used = append(p.used, used)
	} else {
		if p.used[0] != used {
			tb.Fatalf("%s(%x) used %d units of fuel in small slices and %d in a large one", fn, args, used, p.used[0])
		}
		p.used = p.used[1:]
	}
	return 2 + p.starve(tb, fn, args, used, r)
}

// starve gives less than the function needs: it must end for that reason, and nothing else.
func (p *pair) starve(tb testing.TB, fn string, args []uint64, used int64, r *rand.Rand) int {
	if used < 2 || r.IntN(3) > 0 {
		return 0
	}
	*p.tank = tank{slice: 10, left: r.Int64N(used)}
	set(p.mods[1], "g0", 60)
	set(p.mods[1], FuelExport, 0)
	got := p.call(1, fn, args)
	// Memory is another now: it may need less than before, or trap.
	if got.err != "" && !strings.Contains(got.err, "wasm error") && !strings.Contains(got.err, errBudget.Error()) {
		tb.Fatalf("%s(%x) without fuel ends with %q", fn, args, got.err)
	}
	p.renew(tb)
	return 1
}

func set(m api.Module, global string, v uint64) {
	m.ExportedGlobal(global).(api.MutableGlobal).Set(v)
}

func (p *pair) compareState(tb testing.TB, fn string, o outcome) {
	for i := range 4 {
		name := fmt.Sprintf("g%d", i)
		if x, y := p.mods[0].ExportedGlobal(name).Get(), p.mods[1].ExportedGlobal(name).Get(); x != y {
			tb.Fatalf("after %s (%v) global %d is %d, with metering %d", fn, o, i, x, y)
		}
	}
	m0, m1 := p.mods[0].Memory(), p.mods[1].Memory()
	if m0.Size() != m1.Size() {
		tb.Fatalf("after %s (%v) memory has %d bytes, with metering %d", fn, o, m0.Size(), m1.Size())
	}
	b0, _ := m0.Read(0, m0.Size())
	b1, _ := m1.Read(0, m1.Size())
	if !bytes.Equal(b0, b1) {
		tb.Fatalf("after %s (%v) memory differs", fn, o)
	}
}

func TestMeteredModulesDoWhatTheyDidBefore(t *testing.T) {
	n := 80
	if testing.Short() {
		n = 30
	}
	if *modules > 0 {
		n = *modules
	}
	seed := *fromSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-seed %d", seed)
	calls, told := 0, time.Now()
	for i := range uint64(n) {
		if time.Since(told) > time.Minute {
			told = time.Now()
			fmt.Printf("-seed %d: %d of %d modules, %d calls\n", seed, i, n, calls)
		}
		ok := t.Run(fmt.Sprint("seed=", seed+i), func(t *testing.T) {
			calls += compareAll(t, makeModule(seed+i), rand.New(rand.NewPCG(seed+i, 2)))
		})
		if !ok {
			t.Fatalf("repeat it with -args -seed %d -modules 1", seed+i)
		}
	}
	fmt.Printf("-seed %d: %d modules, %d calls, metered as not\n", seed, n, calls)
}

// FuzzMeteredModules is the same, for as long as one likes.
func FuzzMeteredModules(f *testing.F) {
	f.Add(uint64(1), uint64(1))
	f.Fuzz(func(t *testing.T, seed, args uint64) {
		compareAll(t, makeModule(seed), rand.New(rand.NewPCG(args, 2)))
	})
}

// FuzzRewrite takes bytes that are hardly ever a module: what was invalid stays invalid, what was valid stays so, and
// nothing makes the rewriter or the compiler panic.
func FuzzRewrite(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(makeModule(seed))
	}
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	f.Fuzz(func(t *testing.T, code []byte) { rewriteBytes(t, r, code) })
}

func rewriteBytes(t *testing.T, r wazero.Runtime, code []byte) bool {
	res, err := Rewrite(code, DefaultLimits())
	if err != nil {
		return false // What we refuse never runs.
	}
	ctx := context.Background()
	before, err1 := r.CompileModule(ctx, code)
	after, err2 := r.CompileModule(ctx, res.Module)
	if (err1 == nil) != (err2 == nil) {
		t.Fatalf("%x: before %v, after %v", code, err1, err2)
	}
	if err1 == nil {
		before.Close(ctx)
		after.Close(ctx)
	}
	return err1 == nil
}

func TestDamagedModulesStayWhatTheyAre(t *testing.T) {
	seed := *fromSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 4))
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer r.Close(ctx)
	n, valid := 3000, 0
	if testing.Short() {
		n = 500
	}
	if *modules > 0 {
		n = *modules * 10
	}
	for range n {
		code := makeModule(seed + uint64(rnd.IntN(50)))
		for range 1 + rnd.IntN(3) {
			code[8+rnd.IntN(len(code)-8)] = byte(rnd.Uint32() >> rnd.IntN(4))
		}
		if rewriteBytes(t, r, code) {
			valid++
		}
	}
	if valid == 0 {
		t.Fatal("no damaged module was valid: nothing was compared")
	}
	t.Logf("%d damaged modules, %d still valid", n, valid)
}
