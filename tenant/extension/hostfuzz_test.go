package extension

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ostrodb/ostro/tenant/extension/wasm"
)

var (
	modules  = flag.Int("modules", 0, "make so many random modules instead of a few")
	fromSeed = flag.Uint64("seed", 0, "make modules from this seed on; 0: from one of the clock")
)

// interesting values of arguments: ends of memory, of numbers, of what there is.
var interesting = []uint64{0, 1, 2, 4, 7, 8, 16, 100, 1024, 4095, 65_520, 65_535, 65_536, 131_064, 131_072, 131_073, 1 << 31, 1<<32 - 16, 1<<32 - 1}

// randomCalls is a module whose function calls the host again and again, with arguments that make sense or do not.
func randomCalls(r *rand.Rand) []byte {
	m := &wasm.Module{}
	all := append(append([]hostCall{}, hostCalls...), wasiCalls...)
	for i, h := range all {
		t := wasm.FuncType{Params: types(h.params), Results: types(h.result)}
		module := HostModule
		if i >= len(hostCalls) {
			module = wasiModule
		}
		m.AddImport(module, h.name, m.AddType(t))
	}
	m.Memories = []wasm.Limits{{Min: 2}}
	m.Exports = []wasm.Export{{Name: memoryName, Kind: wasm.KindMemory}}
	data := make([]byte, 1024)
	for i := range data {
		data[i] = byte(r.IntN(256)) >> r.IntN(8)
	}
	m.Datas = []wasm.Data{{Offset: wasm.Const{Instr: wasm.Instr{Op: wasm.I32Const}}, Bytes: data}}
	for i := range 4 {
		m.Funcs = append(m.Funcs, m.AddType(wasm.FuncType{Results: []byte{wasm.I32}}))
		m.Code = append(m.Code, wasm.Code{Body: randomBody(r, all)})
		m.Exports = append(m.Exports, wasm.Export{Name: fmt.Sprint(functionPrefix, i), Kind: wasm.KindFunc, Index: uint32(m.ImportedFuncs() + i)})
	}
	if r.IntN(2) == 0 {
		randomArea(r, m)
	}
	return m.Encode()
}

// randomArea gives a module an area somewhere in what its functions write to.
func randomArea(r *rand.Rand, m *wasm.Module) {
	at := wasm.Instr{Op: wasm.I32Const, A: uint64(1 + r.IntN(2000))}
	end := wasm.Instr{Op: wasm.End}
	m.Funcs = append(m.Funcs, m.AddType(wasm.FuncType{Results: []byte{wasm.I32}}))
	m.Code = append(m.Code, wasm.Code{Body: end.Append(at.Append(nil))})
	index := uint32(m.ImportedFuncs() + len(m.Funcs) - 1)
	m.Exports = append(m.Exports, wasm.Export{Name: areaName, Kind: wasm.KindFunc, Index: index})
	if r.IntN(2) == 0 {
		m.Exports = append(m.Exports, wasm.Export{Name: firstName, Kind: wasm.KindFunc, Index: index})
	}
}

func randomBody(r *rand.Rand, all []hostCall) []byte {
	var b []byte
	put := func(op wasm.Op, a uint64) {
		in := wasm.Instr{Op: op, A: a}
		b = in.Append(b)
	}
	for range 1 + r.IntN(20) {
		i := r.IntN(len(all))
		if r.IntN(3) > 0 {
			i = r.IntN(len(hostCalls) - 1) // fail ends it all: not often
		}
		put(wasm.I32Const, uint64(r.IntN(2000))) // where the result goes
		for _, c := range all[i].params {
			v := interesting[r.IntN(len(interesting))]
			switch r.IntN(4) {
			case 0, 1:
				v = uint64(r.IntN(200))
			case 2:
				if r.IntN(4) == 0 {
					v = r.Uint64()
				}
			}
			if c == 'l' {
				put(wasm.I64Const, v)
			} else {
				put(wasm.I32Const, uint64(int64(int32(uint32(v)))))
			}
		}
		put(wasm.Call, uint64(i))
		switch all[i].result {
		case "i":
			put(wasm.I32Store, 0)
		case "l":
			put(wasm.I64Store, 0)
		default:
			put(wasm.Drop, 0)
		}
	}
	put(wasm.I32Const, 0)
	put(wasm.End, 0)
	return b
}

// hammer calls the functions of one random module.
func hammer(t testing.TB, rt *Runtime, seed uint64) int {
	r := rand.New(rand.NewPCG(seed, 5))
	limits := DefaultLimits()
	limits.Call.Fuel = 1 << 24
	m, err := rt.Compile(context.Background(), randomCalls(r), limits)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	defer m.Close(context.Background())
	m.habits.reads.Store(r.Uint64())
	p, err := m.NewPool(limits, PoolOptions{Fresh: r.IntN(4) == 0})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	calls, rounds := 0, 2
	if *modules > 0 {
		rounds = 25
	}
	for range rounds {
		for i := range 4 {
			trial := r.IntN(4) == 0
			if err := p.Warm(1); err != nil {
				t.Fatal(err)
			}
			s := &model{t: t, later: trial && r.IntN(2) == 0, partial: r.IntN(4) == 0}
			res, err := p.Call(&Invocation{Function: fmt.Sprint(i), Keys: [][]byte{{}, []byte("k")}, Args: [][]byte{make([]byte, 50)}, Store: s, Ahead: s, Placed: s, Prompt: s, ReadOnly: r.IntN(4) == 0, Trial: trial, Worker: r.IntN(4)})
			calls++
			if wrong := s.verdict(&res, err, trial); wrong != nil {
				t.Fatalf("seed %d, function %d: %v", seed, i, wrong)
			}
		}
	}
	return calls
}

func TestRandomHostCallsDoNoHarm(t *testing.T) {
	n := 100
	if testing.Short() {
		n = 20
	}
	if *modules > 0 {
		n = *modules
	}
	seed := *fromSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-seed %d", seed)
	rt, err := NewRuntime(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close(context.Background())
	calls, told := 0, time.Now()
	for i := range uint64(n) {
		if time.Since(told) > time.Minute {
			told = time.Now()
			fmt.Printf("-seed %d: %d of %d modules, %d calls\n", seed, i, n, calls)
		}
		calls += hammer(t, rt, seed+i)
	}
	fmt.Printf("-seed %d: %d modules, %d calls, with random calls of the host\n", seed, n, calls)
}

// FuzzHostCalls is the same, for as long as one likes.
func FuzzHostCalls(f *testing.F) {
	f.Add(uint64(1))
	rt, err := NewRuntime(context.Background(), Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { hammer(t, rt, seed) })
}
