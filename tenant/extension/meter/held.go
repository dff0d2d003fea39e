package meter

import "github.com/ostrodb/ostro/tenant/extension/wasm"

// held is where a function that keeps its fuel in a local has it, at the place that is being written. What it calls
// takes the fuel from the global. Where ways through the code meet, the local is right; in between a call leaves the
// fuel in the global until something else than a call needs it. The host never looks at either: it is told what is left
// when it is asked for more, or when the function has returned. After a trap nobody asks.
type held byte

const (
	local  held = iota // the local is right, the global is not
	both               // they are the same
	global             // the global is right
)

// meets tells of instructions from which, or to which, there is more than one way.
func meets(op wasm.Op) bool {
	switch op {
	case wasm.Loop, wasm.If, wasm.Else, wasm.End, wasm.Br, wasm.BrIf, wasm.BrTable, wasm.Return:
		return true
	}
	return false
}

// meet is written before such an instruction.
func (e *emitter) meet(op wasm.Op) {
	e.settle()
	if op != wasm.If && op != wasm.BrIf { // What follows those comes from here only.
		e.held = local
	}
}

func (e *emitter) load()  { e.global(wasm.GlobalGet, e.fuel).local(wasm.LocalSet, e.local) }
func (e *emitter) store() { e.code.local(wasm.LocalGet, e.local).global(wasm.GlobalSet, e.fuel) }

// settle makes the local right.
func (e *emitter) settle() {
	if e.way == inLocal && e.held == global {
		e.load()
		e.held = both
	}
}

// lend makes the global right.
func (e *emitter) lend() {
	if e.way == inLocal && e.held == local {
		e.store()
	}
}

// lent notes that something has taken from the global.
func (e *emitter) lent() { e.held = global }

// callOut writes a call. The fuel goes with it if what is called looks at it.
func (e *emitter) callOut(in *wasm.Instr) {
	looks := in.Op == wasm.CallIndirect || e.callLooks(in.A)
	if looks {
		e.lend()
	}
	if in.Op == wasm.Call {
		in.A = e.moved(in.A)
	}
	e.add(in)
	if looks {
		e.lent()
	}
}

// callLooks tells of functions that look at the fuel, or call such. The host does not look at what the guest has.
func (w *rewriter) callLooks(fn uint64) bool {
	own := int(fn) - w.oldBase
	return own >= 0 && w.f.infos[own].looks
}
