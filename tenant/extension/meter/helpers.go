package meter

import "github.com/ostrodb/ostro/tenant/extension/wasm"

// inlineBytes is how much a copy or a fill moves at most that is done in its place.
const inlineBytes = 512

// stepBytes is what a bulk operation does in one piece: no other goroutine can stop it meanwhile.
const stepBytes = 64 << 10

// helpers are functions that rewritten code calls.
type helpers struct {
	more  uint32 // () : the fuel is below zero, get some
	bytes uint32 // (i32) -> i32 : charge for so many bytes
	elems uint32 // (i32) -> i32 : charge for so many elements of a table
	pages uint32 // (i32) -> i32 : charge for so many pages of memory, or as many as it can have
	copy  uint32 // (i32 i32 i32) : memory.copy in pieces
	fill  uint32 // (i32 i32 i32) : memory.fill in pieces
}

func (w *rewriter) addHelpers() {
	w.more = w.addFunc(nil, nil, nil, w.moreCode())
	i32 := []byte{wasm.I32}
	w.bytes = w.addFunc(i32, i32, nil, w.sizeCode(func(c *code) { c.i64(4).op(wasm.I64ShrU) }))
	w.elems = w.addFunc(i32, i32, nil, w.sizeCode(func(*code) {}))
	w.pages = w.addFunc(i32, i32, nil, w.pagesCode())
	if w.m.NumMemories() > 0 {
		three := []byte{wasm.I32, wasm.I32, wasm.I32}
		w.copy = w.addFunc(three, nil, []wasm.LocalRun{{N: 1, Type: wasm.I32}}, w.copyCode())
		w.fill = w.addFunc(three, nil, []wasm.LocalRun{{N: 1, Type: wasm.I32}}, w.fillCode())
	}
}

func (w *rewriter) addFunc(params, results []byte, locals []wasm.LocalRun, c *code) uint32 {
	m := w.m
	w.sum += w.steps(c)
	m.Funcs = append(m.Funcs, m.AddType(wasm.FuncType{Params: params, Results: results}))
	m.Code = append(m.Code, wasm.Code{Locals: locals, Body: c.end().b})
	return uint32(m.NumFuncs() - 1)
}

func (w *rewriter) moreCode() *code {
	return new(code).global(wasm.GlobalGet, w.fuel).call(w.slice).global(wasm.GlobalSet, w.fuel)
}

// pay takes what is on the stack from the fuel.
func (w *rewriter) pay(c *code) {
	c.i64(-1).op(wasm.I64Mul).global(wasm.GlobalGet, w.fuel).op(wasm.I64Add).global(wasm.GlobalSet, w.fuel)
	w.check(c)
}

func (w *rewriter) check(c *code) {
	c.global(wasm.GlobalGet, w.fuel).i64(0).op(wasm.I64LtS).when().call(w.more).end()
}

// sizeCode charges for a size, which it returns.
func (w *rewriter) sizeCode(scale func(*code)) *code {
	c := new(code)
	c.local(wasm.LocalGet, 0).op(wasm.I64ExtendU)
	scale(c)
	w.pay(c)
	return c.local(wasm.LocalGet, 0)
}

// pagesCode charges for pages that memory is to grow by, which it returns. More than it may ever have it does not get: who asks
// for those, to be refused, pays no more than for all.
func (w *rewriter) pagesCode() *code {
	most := int32(w.l.MemoryPages)
	c := new(code)
	c.local(wasm.LocalGet, 0).i32(most).local(wasm.LocalGet, 0).i32(most).op(wasm.I32LtU).op(wasm.Select)
	c.op(wasm.I64ExtendU).i64(12).op(wasm.I64Shl)
	w.pay(c)
	return c.local(wasm.LocalGet, 0)
}

// piece leaves min(n, stepBytes) in local 3 and charges for it.
func (w *rewriter) piece(c *code) {
	c.local(wasm.LocalGet, 2).i32(stepBytes).local(wasm.LocalGet, 2).i32(stepBytes).op(wasm.I32LtU).op(wasm.Select).
		call(w.bytes).local(wasm.LocalSet, 3)
}

// outside leaves whether address plus length is behind the memory's end.
func outside(c *code, address uint32) {
	c.local(wasm.LocalGet, address).op(wasm.I64ExtendU).local(wasm.LocalGet, 2).op(wasm.I64ExtendU).op(wasm.I64Add).
		op(wasm.MemorySize).op(wasm.I64ExtendU).i64(16).op(wasm.I64Shl).op(wasm.I64GtU)
}

// fillCode is memory.fill(0: where, 1: what, 2: how much). What is outside of memory is left to the
// instruction itself, which traps before anything is written.
func (w *rewriter) fillCode() *code {
	c := new(code)
	outside(c, 0)
	c.when()
	three(c)
	c.op(wasm.MemoryFill).end()
	c.with(wasm.Loop, wasm.EmptyBlock)
	w.piece(c)
	c.local(wasm.LocalGet, 0).local(wasm.LocalGet, 1).local(wasm.LocalGet, 3).op(wasm.MemoryFill)
	advance(c, 0)
	c.local(wasm.LocalGet, 2).local(wasm.LocalGet, 3).op(wasm.I32Sub).local(wasm.LocalTee, 2)
	return c.with(wasm.BrIf, 0).end()
}

func three(c *code) {
	c.local(wasm.LocalGet, 0).local(wasm.LocalGet, 1).local(wasm.LocalGet, 2)
}

func advance(c *code, address uint32) {
	c.local(wasm.LocalGet, address).local(wasm.LocalGet, 3).op(wasm.I32Add).local(wasm.LocalSet, address)
}

// copyCode is memory.copy(0: to, 1: from, 2: how much): upwards if it goes down, else from the end.
func (w *rewriter) copyCode() *code {
	c := new(code)
	outside(c, 0)
	outside(c, 1)
	c.op(wasm.I32Or).when()
	three(c)
	c.op(wasm.MemoryCopy).end()
	c.local(wasm.LocalGet, 0).local(wasm.LocalGet, 1).op(wasm.I32LeU).when()
	c.with(wasm.Loop, wasm.EmptyBlock)
	w.piece(c)
	c.local(wasm.LocalGet, 0).local(wasm.LocalGet, 1).local(wasm.LocalGet, 3).op(wasm.MemoryCopy)
	advance(c, 0)
	advance(c, 1)
	c.local(wasm.LocalGet, 2).local(wasm.LocalGet, 3).op(wasm.I32Sub).local(wasm.LocalTee, 2)
	c.with(wasm.BrIf, 0).end()
	c.op(wasm.Else)
	c.with(wasm.Loop, wasm.EmptyBlock)
	w.piece(c)
	c.local(wasm.LocalGet, 2).local(wasm.LocalGet, 3).op(wasm.I32Sub).local(wasm.LocalSet, 2)
	for address := range uint32(2) {
		c.local(wasm.LocalGet, address).local(wasm.LocalGet, 2).op(wasm.I32Add)
	}
	c.local(wasm.LocalGet, 3).op(wasm.MemoryCopy)
	c.local(wasm.LocalGet, 2)
	return c.with(wasm.BrIf, 0).end().end()
}
