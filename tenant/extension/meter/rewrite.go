package meter

import (
	"fmt"
	"strconv"

	"github.com/ostrodb/ostro/tenant/extension/wasm"
)

// rewriter adds, behind all that the module has:
//
//	import   ostro.:slice (i64) -> i64   gives fuel, or does not return
//	globals  fuel i64, stack i32, and one for each function that code refers to
//	functions that charge for bulk operations, and draw fuel; the entry
//
// The import moves all own functions up by one.
type rewriter struct {
	m       *wasm.Module
	l       Limits
	f       *facts
	oldBase int // imported functions before
	report  Report
	plain   bool // nothing is charged

	fuel, stack uint32            // globals
	refs        map[uint64]uint32 // globals that hold functions
	slice       uint32            // functions
	mayOwe      uint64            // what is left of oweMost
	perCall     int               // steps that the compiler takes for a call
	sum         int               // of its steps
	helpers
}

func newRewriter(m *wasm.Module, l Limits, f *facts) *rewriter {
	return &rewriter{m: m, l: l, f: f, oldBase: m.ImportedFuncs(), mayOwe: oweMost}
}

func (w *rewriter) rewrite() error {
	m := w.m
	own := len(m.Code)
	w.describe()
	w.exportState()
	w.addGlobals()
	w.countMutable()
	w.slice = m.AddImport(HostModule, SliceImport, m.AddType(wasm.FuncType{Params: []byte{wasm.I64}, Results: []byte{wasm.I64}}))
	w.shiftIndices()
	w.addHelpers()
	if err := w.addEntry(); err != nil {
		return err
	}
	for i := range own {
		if err := w.rewriteFunction(i); err != nil {
			return fmt.Errorf("function %d: %w", i+w.oldBase, err)
		}
	}
	if err := w.checkSum(); err != nil {
		return err
	}
	w.l.clamp(m)
	w.report.TableElements = w.f.tableElements(m)
	return nil
}

func (w *rewriter) describe() {
	r := &w.report
	r.Functions = len(w.m.Code)
	r.Restorable = !w.f.mutates
	for i := range w.f.infos {
		if w.f.infos[i].small {
			r.Unmetered++
		}
		if w.f.infos[i].counts {
			r.Recursive++
		}
	}
}

// exportState lets the host read and set the module's variables, so that it can begin anew.
func (w *rewriter) exportState() {
	m := w.m
	for i, g := range m.Globals {
		if !g.Mutable {
			continue
		}
		switch g.Type {
		case wasm.I32, wasm.I64, wasm.F32, wasm.F64:
			m.Exports = append(m.Exports, wasm.Export{Name: StateExport + strconv.Itoa(w.report.States), Kind: wasm.KindGlobal, Index: uint32(m.ImportedGlobals() + i)})
			w.report.States++
		default:
			w.report.Restorable = false
		}
	}
}

func (w *rewriter) addGlobals() {
	w.fuel = w.addGlobal(wasm.I64, wasm.I64Const, 0, FuelExport)
	w.stack = w.addGlobal(wasm.I32, wasm.I32Const, int64(w.l.StackBytes), StackExport)
	w.addRefs()
}

// addRefs adds globals from which code takes what it took by ref.func. The engine makes a new reference each time that
// one is executed, and keeps it as long as the instance: a loop of them would fill the host's memory.
func (w *rewriter) addRefs() {
	w.refs = map[uint64]uint32{}
	for _, fn := range w.f.named {
		w.refs[uint64(fn)] = uint32(w.m.NumGlobals())
		w.m.Globals = append(w.m.Globals, wasm.Global{
			GlobalType: wasm.GlobalType{Type: wasm.FuncRef},
			Init:       wasm.Const{Instr: wasm.Instr{Op: wasm.RefFunc, A: uint64(fn)}},
		})
	}
}

func (w *rewriter) addGlobal(typ byte, op wasm.Op, value int64, name string) uint32 {
	m := w.m
	index := uint32(m.NumGlobals())
	m.Globals = append(m.Globals, wasm.Global{GlobalType: wasm.GlobalType{Type: typ, Mutable: true}, Init: wasm.Const{Instr: wasm.Instr{Op: op, A: uint64(value)}}})
	m.Exports = append(m.Exports, wasm.Export{Name: name, Kind: wasm.KindGlobal, Index: index})
	return index
}

// moved is a function's index after the import was added.
func (w *rewriter) moved(fn uint64) uint64 {
	if fn >= uint64(w.oldBase) {
		return fn + 1
	}
	return fn
}

// shiftIndices moves what names functions outside of code. Custom sections go: they name functions, too.
func (w *rewriter) shiftIndices() {
	m := w.m
	shift := func(c *wasm.Const) {
		if c.Instr.Op == wasm.RefFunc {
			c.Instr.A = w.moved(c.Instr.A)
		}
	}
	for i := range m.Elems {
		for j := range m.Elems[i].Init {
			shift(&m.Elems[i].Init[j])
		}
	}
	for i := range m.Globals {
		shift(&m.Globals[i].Init)
	}
	for i := range m.Exports {
		if e := &m.Exports[i]; e.Kind == wasm.KindFunc {
			e.Index = uint32(w.moved(uint64(e.Index)))
		}
	}
	if m.Start != nil {
		*m.Start = uint32(w.moved(uint64(*m.Start)))
	}
	m.Customs = w.moveNames(m.Customs)
}
