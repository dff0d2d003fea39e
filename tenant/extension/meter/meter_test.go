package meter

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/ostrodb/ostro/tenant/extension/wasm"
)

// metered is work.wasm with a tank that tells what was used.
func metered(t *testing.T) (api.Module, func() int64) {
	t.Helper()
	code, err := os.ReadFile("testdata/work.wasm")
	if err != nil {
		t.Fatal(err)
	}
	res, err := Rewrite(code, DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler())
	t.Cleanup(func() { r.Close(ctx) })
	k := &tank{slice: 1000, left: 1 << 50}
	i64 := []api.ValueType{api.ValueTypeI64}
	if _, err := r.NewHostModuleBuilder(HostModule).NewFunctionBuilder().WithGoFunction(api.GoFunc(k.fill), i64, i64).Export(SliceImport).Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	mod, err := r.Instantiate(ctx, res.Module)
	if err != nil {
		t.Fatal(err)
	}
	return mod, func() int64 { return k.given - int64(mod.ExportedGlobal(FuelExport).Get()) }
}

// Each round of a loop costs the same, whatever way its function keeps its fuel.
func TestFuelGrowsWithTheWorkThatIsDone(t *testing.T) {
	mod, used := metered(t)
	costOf := func(fn string, n uint64) int64 {
		before := used()
		if _, err := mod.ExportedFunction(fn).Call(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		return used() - before
	}
	for _, fn := range []string{"sum", "xorshift", "spin", "hash", "dot"} {
		one, two, four := costOf(fn, 10_000), costOf(fn, 20_000), costOf(fn, 40_000)
		if perRound := float64(two-one) / 10_000; four-two != 2*(two-one) || perRound < 2 || perRound > 4000 {
			t.Errorf("%s: %d, %d and %d units for 10,000, 20,000 and 40,000 rounds", fn, one, two, four)
		}
	}
	if again := costOf("fib", 10); again != costOf("fib", 10) || again < 1000 {
		t.Errorf("fib(10): %d units", again)
	}
}

func TestTheStackIsGivenBack(t *testing.T) {
	mod, _ := metered(t)
	stack := mod.ExportedGlobal(StackExport)
	before := stack.Get()
	if _, err := mod.ExportedFunction("fib").Call(t.Context(), 12); err != nil {
		t.Fatal(err)
	}
	if after := stack.Get(); after != before {
		t.Fatalf("%d bytes before, %d after", before, after)
	}
}

func TestNamesOfFunctionsMoveWithThem(t *testing.T) {
	m := &wasm.Module{
		Types:   []wasm.FuncType{{}},
		Funcs:   []uint32{0, 0},
		Code:    []wasm.Code{{Body: []byte{0x0b}}, {Body: []byte{0x00, 0x0b}}},
		Exports: []wasm.Export{{Name: "f", Kind: wasm.KindFunc, Index: 1}},
		Customs: []wasm.Custom{{Name: "name", Bytes: []byte{1, 7, 2, 0, 1, 'a', 1, 1, 'b'}}, {Name: ".debug_info", Bytes: []byte{1, 2, 3}}},
	}
	res, err := Rewrite(m.Encode(), DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	out, err := wasm.Decode(res.Module)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Customs) != 1 || string(out.Customs[0].Bytes) != string([]byte{1, 7, 2, 1, 1, 'a', 2, 1, 'b'}) {
		t.Fatalf("%v", out.Customs)
	}
}

// A chain of calls needs no account of the stack unless it is deep.
func TestDeepChainsOfCallsCountTheirStack(t *testing.T) {
	for n, want := range map[int]int{10: 0, 20_000: 20_000} {
		m := &wasm.Module{Types: []wasm.FuncType{{}}}
		for i := range n {
			c := &code{}
			if i > 0 {
				c.call(uint32(i - 1))
			}
			m.Funcs, m.Code = append(m.Funcs, 0), append(m.Code, wasm.Code{Body: c.end().b})
		}
		res, err := Rewrite(m.Encode(), DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		if res.Report.Recursive != want {
			t.Errorf("%d of %d functions count their stack, want %d", res.Report.Recursive, n, want)
		}
	}
}

// Each of these functions calls the next one twice, from a block that is large enough to be charged by itself, and none
// has a loop that repeats: what they owe does not add up, for each looks at the fuel when it begins.
func TestEveryFunctionLooksAtTheFuelWhenItBegins(t *testing.T) {
	const depth = 22
	m := &wasm.Module{Types: []wasm.FuncType{{}}}
	for i := range depth {
		c := new(code).with(wasm.Loop, wasm.EmptyBlock)
		for range foldSumMost + foldMost {
			c.i32(0).op(wasm.Drop)
		}
		if i > 0 {
			c.call(uint32(i - 1)).call(uint32(i - 1))
		}
		m.Funcs, m.Code = append(m.Funcs, 0), append(m.Code, wasm.Code{Body: c.end().end().b})
	}
	m.Exports = []wasm.Export{{Name: "f", Kind: wasm.KindFunc, Index: depth - 1}}
	p := newPair(t, m.Encode())
	defer p.close()
	p.renew(t)
	*p.tank = tank{slice: 1000, left: 100_000}
	if got := p.call(1, "f", nil); !strings.Contains(got.err, errBudget.Error()) {
		t.Fatalf("a call of four million functions ends with %v, and was given %d units", got, p.tank.given)
	}
}

// A module that asks for more memory than there can be is told so, whatever it asks for. What it is charged is for memory that it
// could have got.
func TestMemoryThatCannotBeHadCostsNoMoreThanAllThatCan(t *testing.T) {
	m := &wasm.Module{Memories: []wasm.Limits{{Min: 1}}}
	typ := m.AddType(wasm.FuncType{Params: []byte{wasm.I32}, Results: []byte{wasm.I32}})
	m.Funcs = []uint32{typ}
	m.Code = []wasm.Code{{Body: new(code).local(wasm.LocalGet, 0).op(wasm.MemoryGrow).end().b}}
	m.Exports = []wasm.Export{{Name: "f", Kind: wasm.KindFunc}}
	p := newPair(t, m.Encode())
	defer p.close()
	for _, pages := range []uint64{0, 1, 2, 3, 65_536, 1<<32 - 1} {
		p.renew(t)
		*p.tank = tank{slice: 1 << 40, left: 1 << 20}
		want := uint64(1)
		if pages > 2 { // It may have three.
			want = 1<<32 - 1
		}
		got := p.call(1, "f", []uint64{pages})
		used := p.tank.given - int64(p.mods[1].ExportedGlobal(FuelExport).Get())
		if len(got.results) != 1 || got.results[0] != want || used < int64(min(pages, 3))<<12 || used > 3<<12+100 {
			t.Errorf("growing by %d pages gives %v for %d units of fuel", pages, got, used)
		}
	}
}

// An instance keeps them as long as it lives, as it does what its tables have.
func TestElementsThatAreForTablesLaterCountAsThoseOfTables(t *testing.T) {
	some := func(mode byte, n int) wasm.Elem {
		init := make([]wasm.Const, n)
		for i := range init {
			init[i].Instr.Op = wasm.RefFunc
		}
		return wasm.Elem{Mode: mode, Type: wasm.FuncRef, Init: init, Offset: wasm.Const{Instr: wasm.Instr{Op: wasm.I32Const}}}
	}
	m := &wasm.Module{
		Types: []wasm.FuncType{{}}, Funcs: []uint32{0}, Code: []wasm.Code{{Body: []byte{0x0b}}},
		Tables: []wasm.Table{{Type: wasm.FuncRef, Limits: wasm.Limits{Min: 10}}},
		Elems:  []wasm.Elem{some(wasm.Active, 3), some(wasm.Passive, 500), some(wasm.Declared, 7)},
	}
	res, err := Rewrite(m.Encode(), DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	if res.Report.TableElements != 510 {
		t.Errorf("%d elements, want 10 of the table and 500 for later", res.Report.TableElements)
	}
}
