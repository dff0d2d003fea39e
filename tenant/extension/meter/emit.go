package meter

import "github.com/ostrodb/ostro/tenant/extension/wasm"

// A function keeps its fuel in one of two ways.
type way byte

const (
	// inGlobal: charges are taken from the global. For functions without loops.
	inGlobal way = iota
	// inLocal: the fuel moves into a local when the function begins and back when it ends, and for calls of what looks
	// at it. For functions with loops.
	inLocal
)

// emitter writes one function.
type emitter struct {
	*rewriter
	code
	p       *plan
	fi      *info
	way     way
	held    held
	local   uint32   // ours
	frame   bool     // the body is in a block of its own, so that its end is reached whatever happens
	next    int      // region
	at      int      // the instruction that is written
	wrapped []uint64 // what heads of loops charge that have loops around them
	outer   []bool   // blocks that are open: whether one is a loop with a loop around it
}

func (w *rewriter) rewriteFunction(own int) error {
	e := &emitter{rewriter: w, fi: &w.f.infos[own]}
	if w.plain {
		e.fi = &info{small: true}
	}
	if !e.fi.small {
		p, err := w.plan(own)
		if err != nil {
			return err
		}
		e.choose(p)
	}
	e.local = uint32(w.m.NumLocals(own))
	e.b = make([]byte, 0, len(w.m.Code[own].Body)*3/2+64)
	if err := e.body(own); err != nil {
		return err
	}
	if err := w.checkSteps(&e.code); err != nil {
		return err
	}
	c := &w.m.Code[own]
	c.Body = e.b
	if e.p != nil || e.fi.bulk {
		c.Locals = append(c.Locals[:len(c.Locals):len(c.Locals)], wasm.LocalRun{N: 1, Type: wasm.I64}, wasm.LocalRun{N: 4, Type: wasm.I32})
	}
	return nil
}

func (e *emitter) choose(p *plan) {
	e.p = p
	if p.repeats {
		e.way = inLocal
		e.report.InRegisters++
	}
	e.frame = e.way != inGlobal || e.fi.counts
}

func (e *emitter) body(own int) error {
	body := e.m.Body(own)
	e.begin(own)
	var in wasm.Instr
	for i := 0; body.Next(&in); i++ {
		e.chargeAt(i)
		e.at = i
		e.instr(&in)
	}
	return body.Err()
}

// begin writes what stands before the function's first instruction.
func (e *emitter) begin(own int) {
	if e.fi.counts {
		// What it was before is kept, and set again at the end: the next call does not wait for two sums then.
		e.global(wasm.GlobalGet, e.stack).local(wasm.LocalTee, e.saved()).i32(int32(e.fi.frame)).op(wasm.I32LtS).when()
		e.i32(-1).global(wasm.GlobalSet, e.stack).op(wasm.Unreachable).end()
		e.code.local(wasm.LocalGet, e.saved()).i32(int32(e.fi.frame)).op(wasm.I32Sub).global(wasm.GlobalSet, e.stack)
	}
	if e.way == inLocal {
		e.load()
	}
	if e.frame {
		e.with(wasm.Block, e.resultBlock(own))
	}
}

// finish writes what stands behind its last one: the fuel goes back, and the stack.
func (e *emitter) finish() {
	if e.way == inLocal {
		e.store()
	}
	if e.fi.counts {
		e.code.local(wasm.LocalGet, e.saved()).global(wasm.GlobalSet, e.stack)
	}
}

// Behind the function's locals are ours: fuel i64, the stack before i32, operands of a copy 3 i32.
func (e *emitter) saved() uint32   { return e.local + 1 }
func (e *emitter) operand() uint32 { return e.local + 2 }

// resultBlock is the type of a block that leaves what the function returns.
func (e *emitter) resultBlock(own int) uint64 {
	results := e.m.Types[e.m.Funcs[own]].Results
	switch len(results) {
	case 0:
		return wasm.EmptyBlock
	case 1:
		return uint64(results[0])
	}
	return wasm.TypedBlock + uint64(e.m.AddType(wasm.FuncType{Results: results}))
}

// chargeAt charges for the region that begins with instruction i.
func (e *emitter) chargeAt(i int) {
	if e.p == nil {
		return
	}
	for e.next < len(e.p.regions) && e.p.regions[e.next].at == i {
		if r := &e.p.regions[e.next]; !r.gone && r.cost > 0 {
			e.charge(r)
			e.report.Points++
		}
		e.next++
	}
}

func (e *emitter) charge(r *region) {
	switch {
	case e.wraps(r):
		e.chargeLocal(r.cost)
		e.with(wasm.BrIf, 1)
	case e.owes(r):
		e.note(r.cost)
	case e.way == inLocal:
		e.chargeLocal(r.cost)
		e.unlikely(e.refill)
	default:
		e.global(wasm.GlobalGet, e.fuel).i64(int64(r.cost)).op(wasm.I64Sub)
		e.code.local(wasm.LocalTee, e.local).global(wasm.GlobalSet, e.fuel)
		e.code.local(wasm.LocalGet, e.local).i64(0).op(wasm.I64LtS)
		e.unlikely(func() { e.call(e.more) })
	}
}

// unlikely writes what is done if what is on the stack is true, as a second arm: behind the two the compiler keeps in
// registers what the first one leaves there, and a call leaves nothing.
func (e *emitter) unlikely(do func()) {
	e.op(wasm.I32Eqz).when().op(wasm.Else)
	do()
	e.end()
}

// owes tells of regions for which fuel is taken without a look at what is left: that is for the next head of a loop or
// beginning of a function. Until there each function that is on the stack once runs through each of its regions once at
// most, so that what all such regions of the module cost together bounds how far the fuel can go below zero.
func (e *emitter) owes(r *region) bool {
	if r.head || r.at == 0 || e.fi.counts || r.cost > e.mayOwe {
		return false
	}
	e.mayOwe -= r.cost
	return true
}

// note takes a cost from the fuel.
func (e *emitter) note(cost uint64) {
	if e.way == inGlobal {
		e.global(wasm.GlobalGet, e.fuel).i64(int64(cost)).op(wasm.I64Sub).global(wasm.GlobalSet, e.fuel)
		return
	}
	e.settle()
	e.held = local
	e.code.local(wasm.LocalGet, e.local).i64(int64(cost)).op(wasm.I64Sub).local(wasm.LocalSet, e.local)
}

// chargeLocal takes from the local and leaves whether it is used up.
func (e *emitter) chargeLocal(cost uint64) {
	e.settle()
	e.held = local
	e.code.local(wasm.LocalGet, e.local).i64(int64(cost)).op(wasm.I64Sub).local(wasm.LocalTee, e.local)
	e.i64(0).op(wasm.I64LtS)
}

// refill brings the local above zero again.
func (e *emitter) refill() {
	e.code.local(wasm.LocalGet, e.local).call(e.slice).local(wasm.LocalSet, e.local)
}

// instr writes an instruction of the module's.
func (e *emitter) instr(in *wasm.Instr) {
	if meets(in.Op) {
		e.meet(in.Op)
	}
	switch in.Op {
	case wasm.Block, wasm.If:
		e.outer = append(e.outer, false)
	case wasm.Loop:
		e.openLoop(in)
		return
	case wasm.End:
		if e.closeBlock() {
			return
		}
	case wasm.Br, wasm.BrIf:
		in.A = e.label(in.A)
	case wasm.BrTable:
		for i, l := range in.Labels {
			in.Labels[i] = uint32(e.label(uint64(l)))
		}
	case wasm.Return:
		if e.frame {
			e.with(wasm.Br, e.label(uint64(len(e.outer))))
			return
		}
	case wasm.Call, wasm.CallIndirect:
		e.callOut(in)
		return
	case wasm.RefFunc:
		e.global(wasm.GlobalGet, e.refs[in.A])
		return
	}
	if isBulk(in.Op) && !e.plain {
		e.bulk(in)
		return
	}
	e.add(in)
}

// move writes a copy or a fill. Its operands are kept in locals: a small one is paid for already, a large one is done by
// a function, in pieces. So are all of them where there are many.
func (e *emitter) move(in *wasm.Instr, large uint32) {
	if !e.fi.inlines() {
		e.lend()
		e.call(large)
		e.lent()
		return
	}
	first := e.operand()
	for i := range uint32(3) {
		e.code.local(wasm.LocalSet, first+2-i)
	}
	three := func() {
		for i := range uint32(3) {
			e.code.local(wasm.LocalGet, first+i)
		}
	}
	e.code.local(wasm.LocalGet, first+2).i32(inlineBytes).op(wasm.I32GtU).when()
	e.lend()
	three()
	e.call(large)
	if e.way == inLocal && e.held != global { // It is where it was, whether this was large or not.
		e.load()
	}
	e.op(wasm.Else)
	three()
	e.add(in)
	e.end()
}

// bulk writes an instruction that is charged by its size.
func (e *emitter) bulk(in *wasm.Instr) {
	switch in.Op {
	case wasm.MemoryCopy:
		e.move(in, e.copy)
		return
	case wasm.MemoryFill:
		e.move(in, e.fill)
		return
	}
	e.lend()
	switch in.Op {
	case wasm.MemoryInit:
		e.call(e.bytes)
	case wasm.MemoryGrow:
		e.call(e.pages)
	default:
		e.call(e.elems)
	}
	e.lent()
	e.add(in)
}
