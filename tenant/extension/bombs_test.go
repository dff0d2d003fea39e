package extension_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/tenant/extension"
	"github.com/ostrodb/ostro/tenant/extension/meter"
	"github.com/ostrodb/ostro/tenant/extension/wasm"
)

// function is a module with one function "f", to be changed before it is encoded.
func function(body ...byte) *wasm.Module {
	return &wasm.Module{
		Types:    []wasm.FuncType{{Results: []byte{wasm.I32}}},
		Funcs:    []uint32{0},
		Memories: []wasm.Limits{{Min: 1}},
		Exports:  []wasm.Export{{Name: "memory", Kind: wasm.KindMemory}, {Name: "ostro_fn_f", Kind: wasm.KindFunc}},
		Code:     []wasm.Code{{Body: append(body, 0x41, 0, 0x0b)}}, // i32.const 0, end
	}
}

func TestBombsAreRefusedBeforeTheyAreCompiled(t *testing.T) {
	r := newRuntime(t, extension.Options{})
	i32s := func(n int) []byte { return bytes.Repeat([]byte{wasm.I32}, n) }
	for name, change := range map[string]func(m *wasm.Module){
		"memory": func(m *wasm.Module) { m.Memories[0].Min = 65536 },
		"table":  func(m *wasm.Module) { m.Tables = []wasm.Table{{Type: wasm.FuncRef, Limits: wasm.Limits{Min: 1 << 31}}} },
		"tables": func(m *wasm.Module) { m.Tables = make([]wasm.Table, 17); fillTables(m.Tables) },
		"locals": func(m *wasm.Module) { m.Code[0].Locals = []wasm.LocalRun{{N: 1<<32 - 1, Type: wasm.I64}} },
		"runs of locals": func(m *wasm.Module) {
			m.Code[0].Locals = []wasm.LocalRun{{N: 1<<32 - 1, Type: wasm.I64}, {N: 1<<32 - 1, Type: wasm.I64}}
		},
		"parameters": func(m *wasm.Module) { m.Types = append(m.Types, wasm.FuncType{Params: i32s(1000)}) },
		"results":    func(m *wasm.Module) { m.Types = append(m.Types, wasm.FuncType{Results: i32s(1000)}) },
		"code":       func(m *wasm.Module) { m.Code[0].Body = append(bytes.Repeat([]byte{1}, 1<<20), m.Code[0].Body...) },
		"functions": func(m *wasm.Module) {
			for range 40_000 {
				m.Funcs, m.Code = append(m.Funcs, 0), append(m.Code, m.Code[0])
			}
		},
		"blocks and locals": func(m *wasm.Module) {
			m.Code[0].Locals = []wasm.LocalRun{{N: 2000, Type: wasm.I64}}
			m.Code[0].Body = append(bytes.Repeat([]byte{0x02, 0x40, 0x0b}, 2_900), m.Code[0].Body...) // block, end
		},
		"blocks": func(m *wasm.Module) {
			m.Code[0].Body = append(bytes.Repeat([]byte{0x02, 0x40, 0x0b}, 10_000), m.Code[0].Body...)
		},
		"blocks in many functions": func(m *wasm.Module) {
			m.Code[0].Body = append(bytes.Repeat([]byte{0x02, 0x40, 0x0b}, 2_000), m.Code[0].Body...)
			for range 20 {
				m.Funcs, m.Code = append(m.Funcs, 0), append(m.Code, m.Code[0])
			}
		},
		"locals in nested loops": func(m *wasm.Module) { nestedLoops(m, 75) },
		"locals in nested loops of many functions": func(m *wasm.Module) {
			nestedLoops(m, 45)
			for range 20 {
				m.Funcs, m.Code = append(m.Funcs, 0), append(m.Code, m.Code[0])
			}
		},
		"loops in loops": func(m *wasm.Module) {
			m.Code[0].Body = slices.Concat(bytes.Repeat([]byte{0x03, 0x40}, 101), bytes.Repeat([]byte{0x0b}, 101), m.Code[0].Body)
		},
		"loops": func(m *wasm.Module) {
			m.Code[0].Body = append(bytes.Repeat([]byte{0x03, 0x40, 0x0b}, 1_450), m.Code[0].Body...)
		},
		"locals where branches meet": func(m *wasm.Module) {
			m.Code[0].Locals = []wasm.LocalRun{{N: 120, Type: wasm.I32}}
			m.Code[0].Body = slices.Concat(bytes.Repeat(branchy, 1_000), readAll(120), m.Code[0].Body)
		},
		"operands beside branches": func(m *wasm.Module) {
			m.Code[0].Locals = []wasm.LocalRun{{N: 1, Type: wasm.I32}}
			m.Code[0].Body = slices.Concat(bytes.Repeat([]byte{0x41, 0}, 500), bytes.Repeat(branchy, 1_000), bytes.Repeat([]byte{0x1a}, 500), m.Code[0].Body)
		},
		"operands beside branches to the end": func(m *wasm.Module) {
			out := []byte{0x41, 0, 0x41, 0, 0x0d, 0, 0x1a} // i32.const 0 (the result), i32.const 0, br_if 0, drop
			m.Code[0].Body = slices.Concat(bytes.Repeat([]byte{0x41, 0}, 500), bytes.Repeat(out, 2_000), bytes.Repeat([]byte{0x1a}, 500), m.Code[0].Body)
		},
		"operands": func(m *wasm.Module) {
			m.Code[0].Body = slices.Concat(bytes.Repeat([]byte{0x41, 0}, 10_001), bytes.Repeat([]byte{0x1a}, 10_001), m.Code[0].Body)
		},
		"calls and variables": func(m *wasm.Module) { callsAndVariables(m, 1_000, 1_000) },
		"calls of the host and variables": func(m *wasm.Module) {
			callsAndVariables(m, 0, 1_000)
			m.AddImport("ostro", "yield", 1)
			m.Exports[1].Index++
			m.Code[0].Body = append(bytes.Repeat([]byte{0x10, 0}, 1_000), m.Code[0].Body...) // call 0
		},
		"calls and variables in many functions": func(m *wasm.Module) {
			callsAndVariables(m, 100, 1_000)
			for range 20 {
				m.Funcs, m.Code = append(m.Funcs, 0), append(m.Code, m.Code[0])
			}
		},
		"calls by table": func(m *wasm.Module) {
			m.Tables = []wasm.Table{{Type: wasm.FuncRef, Limits: wasm.Limits{Min: 1}}}
			m.Code[0].Body = append(bytes.Repeat([]byte{0x41, 0, 0x11, 0, 0, 0x1a}, 12_000), m.Code[0].Body...) // i32.const 0, call_indirect, drop
		},
		"accesses of tables": func(m *wasm.Module) {
			m.Tables = []wasm.Table{{Type: wasm.FuncRef, Limits: wasm.Limits{Min: 1}}}
			m.Code[0].Body = append(bytes.Repeat([]byte{0x41, 0, 0x25, 0, 0x1a}, 34_000), m.Code[0].Body...) // i32.const 0, table.get, drop
		},
		"memory that grows": func(m *wasm.Module) {
			m.Code[0].Body = append(bytes.Repeat([]byte{0x41, 0, 0x40, 0, 0x1a}, 25_000), m.Code[0].Body...) // i32.const 0, memory.grow, drop
		},
		"truncations": func(m *wasm.Module) {
			m.Code[0].Body = append(bytes.Repeat([]byte{0x43, 0, 0, 0, 0, 0xa8, 0x1a}, 29_000), m.Code[0].Body...) // f32.const 0, i32.trunc_f32_s, drop
		},
		"elements": func(m *wasm.Module) {
			m.Elems = []wasm.Elem{{Mode: wasm.Passive, Type: wasm.FuncRef, Init: make([]wasm.Const, 40_000)}}
			for i := range m.Elems[0].Init {
				m.Elems[0].Init[i].Instr.Op = wasm.RefFunc
			}
			m.Elems = append(m.Elems, m.Elems[0])
		},
		"element segments": func(m *wasm.Module) {
			m.Elems = slices.Repeat([]wasm.Elem{{Mode: wasm.Passive, Type: wasm.FuncRef}}, 5_000)
		},
		"data segments": func(m *wasm.Module) { m.Datas = slices.Repeat([]wasm.Data{{Mode: wasm.Passive}}, 140_000) },
		"types":         func(m *wasm.Module) { m.Types = slices.Repeat(m.Types, 5_000) },
		"imports": func(m *wasm.Module) {
			m.Imports = slices.Repeat([]wasm.Import{{Module: "ostro", Name: "yield"}}, 31_000)
		},
		"exports":         func(m *wasm.Module) { m.Exports = slices.Repeat(m.Exports, 3_000) },
		"custom sections": func(m *wasm.Module) { m.Customs = make([]wasm.Custom, 2_000) },
		"globals":         func(m *wasm.Module) { m.Globals = make([]wasm.Global, 2000); fillGlobals(m.Globals) },
		"data":            func(m *wasm.Module) { m.Datas = []wasm.Data{{Mode: wasm.Passive, Bytes: make([]byte, 9<<20)}} },
	} {
		m := function()
		change(m)
		var limit *meter.LimitError
		if _, err := r.Compile(t.Context(), m.Encode(), extension.DefaultLimits()); !errors.As(err, &limit) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := r.Compile(t.Context(), function().Encode(), extension.DefaultLimits()); err != nil {
		t.Errorf("without any of them: %v", err)
	}
}

// callsAndVariables makes a function that calls another, which does nothing, again and again, in a module with mutable globals.
func callsAndVariables(m *wasm.Module, calls, variables int) {
	m.Types, m.Funcs, m.Code = append(m.Types, wasm.FuncType{}), append(m.Funcs, 1), append(m.Code, wasm.Code{Body: []byte{0x0b}})
	m.Globals = make([]wasm.Global, variables)
	fillGlobals(m.Globals)
	for i := range m.Globals {
		m.Globals[i].Mutable = true
	}
	m.Code[0].Body = append(bytes.Repeat([]byte{0x10, 1}, calls), m.Code[0].Body...) // call 1
}

// branchy is a block that may be left early.
var branchy = []byte{0x02, 0x40, 0x20, 0, 0x0d, 0, 0x0b}

// nestedLoops makes a function of n loops in each other, whose beginnings each have n locals that may have changed.
func nestedLoops(m *wasm.Module, n byte) {
	m.Code[0].Locals = []wasm.LocalRun{{N: uint32(n), Type: wasm.I32}}
	var body []byte
	for i := range n {
		body = append(body, 0x03, 0x40, 0x20, i, 0x41, 1, 0x6a, 0x21, i*3%n) // loop, local = other local + 1
	}
	for range n {
		body = append(body, branchy[2:]...) // br_if, end
	}
	m.Code[0].Body = slices.Concat(body, readAll(n), m.Code[0].Body)
}

// readAll reads n locals.
func readAll(n byte) (code []byte) {
	for i := range n {
		code = append(code, 0x20, i, 0x1a)
	}
	return code
}

func TestWhoIsRefusedIsToldWhatToSplit(t *testing.T) {
	m := function()
	nestedLoops(m, 75)
	_, err := extension.Describe(m.Encode(), extension.DefaultLimits())
	for _, want := range []string{"function 0: ", "the limit is 40000000", "it has 75 locals, 300 blocks and branches, loops 75 deep", "split the function"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it lacks %q: %v", want, err)
		}
	}
}

func TestWhoHasManyCallsAndMutableGlobalsIsToldOfBoth(t *testing.T) {
	m := function()
	callsAndVariables(m, 1_200, 1_000)
	_, err := extension.Describe(m.Encode(), extension.DefaultLimits())
	for _, want := range []string{"function 0: ", "the limit is 1000000", "it has 1201 calls", "1002 mutable globals", "and 0 steps for tables", "split the function"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it lacks %q: %v", want, err)
		}
	}
}

func fillTables(all []wasm.Table) {
	for i := range all {
		all[i].Type = wasm.FuncRef
	}
}

func fillGlobals(all []wasm.Global) {
	for i := range all {
		all[i] = wasm.Global{GlobalType: wasm.GlobalType{Type: wasm.I32}, Init: wasm.Const{Instr: wasm.Instr{Op: wasm.I32Const}}}
	}
}

func TestWhatIsNotForFunctionsIsRefusedByName(t *testing.T) {
	r := newRuntime(t, extension.Options{})
	for want, change := range map[string]func(m *wasm.Module){
		"it imports env.abort, which is not there":                 func(m *wasm.Module) { m.AddImport("env", "abort", 0) },
		"it imports ostro.now as () -> i32, but that is () -> i64": func(m *wasm.Module) { m.AddImport("ostro", "now", 0) },
		"it imports ostro.:slice, which is not there":              func(m *wasm.Module) { m.AddImport("ostro", ":slice", 0) },
		"it exports no memory":                                     func(m *wasm.Module) { m.Exports = m.Exports[1:] },
		"it exports no function":                                   func(m *wasm.Module) { m.Exports = m.Exports[:1] },
		"names that begin with ostro: are the store's": func(m *wasm.Module) {
			m.Exports = append(m.Exports, wasm.Export{Name: "ostro:fuel", Kind: wasm.KindFunc})
		},
		"has no good name":  func(m *wasm.Module) { m.Exports[1].Name = "ostro_fn_a b" },
		"must be () -> i32": func(m *wasm.Module) { m.Types[0].Results = nil; m.Code[0].Body = []byte{0x0b} },
		"atomic instructions (threads) are not supported": func(m *wasm.Module) { m.Code[0].Body = []byte{0xfe, 3, 0, 0x41, 0, 0x0b} },
		"tail calls are not supported":                    func(m *wasm.Module) { m.Code[0].Body = []byte{0x12, 0, 0x0b} },
		"exceptions are not supported":                    func(m *wasm.Module) { m.Code[0].Body = []byte{0x06, 0x40, 0x0b, 0x0b} },
	} {
		m := function()
		change(m)
		if _, err := r.Compile(t.Context(), m.Encode(), extension.DefaultLimits()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// What rewriting adds stands behind what a module has. None of it may be within reach.
func TestNothingThatIsAddedCanBeNamed(t *testing.T) {
	r := newRuntime(t, extension.Options{})
	for name, body := range map[string][]byte{
		"the fuel":             {0x42, 0x7f, 0x24, 0},                                  // i64.const -1, global.set 0
		"the stack":            {0x41, 0x7f, 0x24, 1},                                  // i32.const -1, global.set 1
		"a local":              {0x03, 0x40, 0x42, 0, 0x21, 0, 0x41, 1, 0x0d, 0, 0x0b}, // loop: i64.const 0, local.set 0, br_if 0
		"a helper":             {0x10, 1},                                              // call 1
		"a helper's reference": {0xd2, 1, 0x1a},                                        // ref.func 1, drop
		"an outer label":       {0x0c, 1},                                              // br 1
		"a type":               {0x02, 1, 0x0b},                                        // block of type 1
	} {
		if _, err := r.Compile(t.Context(), function(body...).Encode(), extension.DefaultLimits()); err == nil || !strings.Contains(err.Error(), "there is no ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAStartFunctionIsMetered(t *testing.T) {
	m := function(0x03, 0x40, 0x0c, 0, 0x0b) // loop, br 0
	m.Types = append(m.Types, wasm.FuncType{})
	m.Funcs = append(m.Funcs, 1)
	m.Code = append(m.Code, wasm.Code{Body: []byte{0x03, 0x40, 0x0c, 0, 0x0b, 0x0b}})
	start := uint32(1)
	m.Start = &start
	limits := extension.DefaultLimits()
	limits.Call.Fuel = 1_000_000
	mod, err := newRuntime(t, extension.Options{}).Compile(t.Context(), m.Encode(), limits)
	if err != nil {
		t.Fatal(err)
	}
	err = poolOf(t, mod, limits, extension.PoolOptions{}).Warm(1)
	wantKind(t, err, extension.OutOfFuel)
}

func TestABusyPoolSaysSo(t *testing.T) {
	p := poolOf(t, compile(t, "work"), extension.DefaultLimits(), extension.PoolOptions{Instances: 1})
	s := storeOf(t, "k=v")
	_, err := p.Call(&extension.Invocation{Function: "clock", Store: s, Turns: turns(func(extension.Reason) error {
		if _, err := invoke(p, s, "get", "k"); !errors.Is(err, extension.ErrBusy) {
			t.Errorf("a second call: %v", err)
		}
		return nil
	})})
	if err != nil {
		t.Fatal(err)
	}
	call(t, p, s, "get", "k")
}
