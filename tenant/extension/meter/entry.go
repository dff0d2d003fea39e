package meter

import (
	"strings"

	"github.com/ostrodb/ostro/tenant/extension/wasm"
)

// entriesMost is how many functions a module can have that are called from outside.
const entriesMost = 512

// addEntry adds the one function that the host calls:
//
//	ostro:call (which i32, fuel i64, stack i32) -> (what it returned i32, fuel left i64)
//
// One call sets the fuel and says what is left of it, and since an engine keeps a stack for every function that is
// called from outside, one such function makes instances of modules with many smaller.
func (w *rewriter) addEntry() error {
	names, fns := w.entries()
	if err := within("functions that can be invoked", len(fns), entriesMost); err != nil {
		return err
	}
	w.report.Entries = names
	c := new(code)
	c.local(wasm.LocalGet, 1).global(wasm.GlobalSet, w.fuel).local(wasm.LocalGet, 2).global(wasm.GlobalSet, w.stack)
	w.dispatch(c, fns)
	fn := w.addFunc([]byte{wasm.I32, wasm.I64, wasm.I32}, []byte{wasm.I32, wasm.I64}, nil, c)
	w.m.Exports = append(w.m.Exports, wasm.Export{Name: EntryExport, Kind: wasm.KindFunc, Index: fn})
	return nil
}

// entries are the exports that are called by the host, in the order of their numbers.
func (w *rewriter) entries() (names []string, fns []uint32) {
	for _, e := range w.m.Exports {
		if e.Kind != wasm.KindFunc {
			continue
		}
		t := w.m.TypeOf(e.Index)
		returns := len(t.Params) == 0 && string(t.Results) == string([]byte{wasm.I32})
		nothing := len(t.Params) == 0 && len(t.Results) == 0
		function := strings.HasPrefix(e.Name, FunctionPrefix) || e.Name == AreaName
		if returns && function || nothing && e.Name == InitializeName {
			names, fns = append(names, e.Name), append(fns, e.Index)
		}
	}
	return names, fns
}

// dispatch writes a block for each function, from which a table of branches chooses.
func (w *rewriter) dispatch(c *code, fns []uint32) {
	for range fns {
		c.with(wasm.Block, wasm.EmptyBlock)
	}
	labels := make([]uint32, 0, len(fns)+1)
	for i := range fns {
		labels = append(labels, uint32(i))
	}
	if n := len(fns); n > 0 {
		labels = append(labels, uint32(n-1))
		table := wasm.Instr{Op: wasm.BrTable, Labels: labels}
		c.local(wasm.LocalGet, 0)
		c.add(&table)
	}
	for _, fn := range fns {
		c.end().call(fn)
		if len(w.m.TypeOf(fn).Results) == 0 {
			c.i32(0)
		}
		w.check(c) // It may owe.
		c.global(wasm.GlobalGet, w.fuel).op(wasm.Return)
	}
	c.op(wasm.Unreachable)
}
