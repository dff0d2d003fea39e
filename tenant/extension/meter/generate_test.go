package meter

import (
	"fmt"
	"math/rand/v2"

	"github.com/ostrodb/ostro/tenant/extension/wasm"
)

// maker makes random valid modules that end: every function takes from a global when it begins and returns at once when
// nothing is left there, and every loop counts down. A second global counts entries of functions and rounds of loops.
type maker struct {
	r     *rand.Rand
	m     *wasm.Module
	types []wasm.FuncType // of functions, before anything else is added

	code
	locals  []byte // types of the function's, parameters first
	results []byte // the function's
	labels  [][]byte
	loops   []uint32 // counters: a local each, not for other use
	size    int      // statements that may still be made
}

const (
	globalLife  = 0 // what functions take from
	globalTicks = 1
	globalFirst = 2 // of those for use
)

var numeric = []byte{wasm.I32, wasm.I64, wasm.F32, wasm.F64}

func makeModule(seed uint64) []byte {
	g := &maker{r: rand.New(rand.NewPCG(seed, 1)), m: &wasm.Module{}}
	m := g.m
	for range 1 + g.r.IntN(5) {
		m.Types = append(m.Types, wasm.FuncType{Params: g.someTypes(3), Results: g.someTypes(2)})
	}
	m.Types = append(m.Types, wasm.FuncType{})
	g.types = m.Types
	n := 1 + g.r.IntN(6)
	for range n {
		m.Funcs = append(m.Funcs, uint32(g.r.IntN(len(m.Types))))
	}
	g.state(n)
	for i := range n {
		m.Code = append(m.Code, g.function(i))
		m.Exports = append(m.Exports, wasm.Export{Name: fmt.Sprintf("f%d", i), Kind: wasm.KindFunc, Index: uint32(i)})
	}
	return m.Encode()
}

// state adds memory, globals, a table and segments.
func (g *maker) state(funcs int) {
	m := g.m
	m.Memories = []wasm.Limits{{Min: 1 + uint32(g.r.IntN(3)), Max: 3, Bounded: true}}
	m.Tables = []wasm.Table{{Type: wasm.FuncRef, Limits: wasm.Limits{Min: uint32(funcs) + 2, Max: 32, Bounded: true}}}
	global := func(typ byte, op wasm.Op, v uint64) {
		m.Exports = append(m.Exports, wasm.Export{Name: fmt.Sprintf("g%d", len(m.Globals)), Kind: wasm.KindGlobal, Index: uint32(len(m.Globals))})
		m.Globals = append(m.Globals, wasm.Global{GlobalType: wasm.GlobalType{Type: typ, Mutable: true}, Init: wasm.Const{Instr: wasm.Instr{Op: op, A: v}}})
	}
	global(wasm.I32, wasm.I32Const, 60)
	global(wasm.I64, wasm.I64Const, 0)
	global(wasm.I32, wasm.I32Const, uint64(g.r.IntN(1000)))
	global(wasm.I64, wasm.I64Const, uint64(g.r.IntN(1000)))
	m.Exports = append(m.Exports, wasm.Export{Name: "memory", Kind: wasm.KindMemory})
	elem := wasm.Elem{Type: wasm.FuncRef, Offset: wasm.Const{Instr: wasm.Instr{Op: wasm.I32Const}}}
	for i := range funcs {
		elem.Init = append(elem.Init, wasm.Const{Instr: wasm.Instr{Op: wasm.RefFunc, A: uint64(i)}})
	}
	passive := wasm.Elem{Mode: wasm.Passive, Type: wasm.FuncRef, Init: elem.Init}
	m.Elems = []wasm.Elem{elem, passive}
	bytes := make([]byte, 64)
	for i := range bytes {
		bytes[i] = byte(g.r.Uint32())
	}
	m.Datas = []wasm.Data{
		{Offset: wasm.Const{Instr: wasm.Instr{Op: wasm.I32Const, A: uint64(g.r.IntN(60000))}}, Bytes: bytes},
		{Mode: wasm.Passive, Bytes: bytes[:32]},
	}
	m.Counted = true
}

func (g *maker) someTypes(most int) []byte {
	all := []byte{}
	for range g.r.IntN(most + 1) {
		all = append(all, numeric[g.r.IntN(4)])
	}
	return all
}

func (g *maker) function(i int) wasm.Code {
	t := g.types[g.m.Funcs[i]]
	g.code, g.results = code{}, t.Results
	g.locals = append([]byte{}, t.Params...)
	var runs []wasm.LocalRun
	for range 2 + g.r.IntN(4) {
		typ := numeric[g.r.IntN(4)]
		g.locals = append(g.locals, typ)
		runs = append(runs, wasm.LocalRun{N: 1, Type: typ})
	}
	first := uint32(len(g.locals))
	g.loops = []uint32{first, first + 1, first + 2}
	runs = append(runs, wasm.LocalRun{N: 3, Type: wasm.I32})
	g.size = 4 + g.r.IntN(25)
	g.labels = [][]byte{t.Results}
	if g.r.IntN(4) > 0 { // Else it is small, perhaps, and calls nothing that recurs.
		g.global(wasm.GlobalGet, globalLife).i32(1).op(wasm.I32Sub).global(wasm.GlobalSet, globalLife)
		g.global(wasm.GlobalGet, globalLife).i32(0).op(wasm.I32LtS).when()
		g.zeros(t.Results)
		g.op(wasm.Return).end()
		g.tick()
		g.statements(3)
		for _, typ := range t.Results {
			g.value(typ, 3)
		}
	} else {
		g.tick()
		g.size = 0
		for _, typ := range t.Results {
			g.value(typ, 1)
		}
	}
	g.end()
	return wasm.Code{Locals: runs, Body: g.b}
}

func (g *maker) tick() {
	g.global(wasm.GlobalGet, globalTicks).i64(1).op(wasm.I64Add).global(wasm.GlobalSet, globalTicks)
}

func (g *maker) zeros(types []byte) {
	for _, t := range types {
		g.constant(t, 0)
	}
}

func (g *maker) constant(t byte, v int64) {
	switch t {
	case wasm.I32:
		g.i32(int32(v))
	case wasm.I64:
		g.i64(v)
	case wasm.F32:
		g.with(wasm.F32Const, uint64(uint32(v)<<23))
	case wasm.F64:
		g.with(wasm.F64Const, uint64(v)<<52)
	}
}

// statements leave the stack as it was.
func (g *maker) statements(depth int) {
	for range 1 + g.r.IntN(5) {
		if g.size <= 0 {
			return
		}
		g.size--
		if !g.statement(depth) {
			g.dead()
			return
		}
	}
}

// statement makes one; false if what follows is never reached.
func (g *maker) statement(depth int) bool {
	kind := g.r.IntN(22)
	if depth == 0 && kind >= 4 && kind <= 9 {
		kind = 0
	}
	switch kind {
	case 0, 1:
		l := g.r.IntN(len(g.locals))
		g.value(g.locals[l], 2)
		g.local(wasm.LocalSet, uint32(l))
	case 2:
		g.value(wasm.I32, 2)
		g.global(wasm.GlobalSet, globalFirst)
	case 3:
		g.store()
	case 4:
		g.conditional(depth)
	case 5, 6:
		g.block(depth)
	case 7, 8:
		g.loop(depth)
	case 9:
		g.typedBlock(depth)
	case 10:
		g.callAny()
	case 11:
		g.bulk()
	case 12:
		g.branchIf()
	case 13:
		if g.r.IntN(3) == 0 {
			return g.leave()
		}
	case 14:
		if g.r.IntN(3) == 0 {
			g.tableOp()
		}
	case 15:
		g.i32(int32(g.r.IntN(2))).with(wasm.MemoryGrow, 0).op(wasm.Drop)
	case 16:
		g.op(wasm.Nop)
	default:
		g.value(numeric[g.r.IntN(4)], 2)
		g.op(wasm.Drop)
	}
	return true
}

func (g *maker) store() {
	g.address()
	if g.r.IntN(2) == 0 {
		g.value(wasm.I32, 1)
		in := wasm.Instr{Op: []wasm.Op{wasm.I32Store, wasm.I32Store8, 0x3b}[g.r.IntN(3)], B: uint64(g.r.IntN(100))}
		g.b = in.Append(g.b)
	} else {
		g.value(wasm.I64, 1)
		in := wasm.Instr{Op: wasm.Op(0x3c + g.r.IntN(3)), B: uint64(g.r.IntN(100))}
		g.b = in.Append(g.b)
	}
}

// address is mostly within memory.
func (g *maker) address() {
	g.value(wasm.I32, 1)
	if g.r.IntN(16) > 0 {
		g.i32([]int32{0xfff8, 0x0ff8, 0x1fff8}[g.r.IntN(3)]).op(wasm.I32And)
	}
}

func (g *maker) conditional(depth int) {
	g.value(wasm.I32, 2)
	g.when()
	g.labels = append(g.labels, nil)
	g.statements(depth - 1)
	if g.r.IntN(2) == 0 {
		g.op(wasm.Else)
		g.statements(depth - 1)
	}
	g.labels = g.labels[:len(g.labels)-1]
	g.end()
}

func (g *maker) block(depth int) {
	g.with(wasm.Block, wasm.EmptyBlock)
	g.labels = append(g.labels, nil)
	g.statements(depth - 1)
	g.branchIf()
	g.statements(depth - 1)
	g.labels = g.labels[:len(g.labels)-1]
	g.end()
}

// loop counts down in a local of its own: one for each level.
func (g *maker) loop(depth int) {
	if len(g.loops) == 0 {
		return
	}
	counter := g.loops[0]
	g.loops = g.loops[1:]
	rounds := 1 + g.r.IntN(5)
	if g.r.IntN(6) == 0 && len(g.loops) == 2 { // only the outermost
		rounds = 300
	}
	g.i32(int32(rounds)).local(wasm.LocalSet, counter)
	g.with(wasm.Loop, wasm.EmptyBlock)
	g.tick()
	// Only what follows the count goes back to the head.
	g.labels = append(g.labels, []byte{0})
	g.statements(depth - 1)
	g.local(wasm.LocalGet, counter).i32(1).op(wasm.I32Sub).local(wasm.LocalTee, counter)
	g.i32(0).op(wasm.Op(0x4a)) // i32.gt_s
	switch g.r.IntN(3) {
	case 0:
		g.with(wasm.BrIf, 0)
	case 1:
		g.when().with(wasm.Br, 1).end()
	default: // a table: round again, or on
		g.op(wasm.I32Eqz)
		g.with(wasm.If, wasm.EmptyBlock).op(wasm.Else)
		g.i32(int32(g.r.IntN(3)))
		in := wasm.Instr{Op: wasm.BrTable, Labels: []uint32{1, 1, 1}}
		g.b = in.Append(g.b)
		g.end()
	}
	g.statements(depth - 1)
	g.labels = g.labels[:len(g.labels)-1]
	g.end()
	g.loops = append([]uint32{counter}, g.loops...)
}

// typedBlock has parameters and results.
func (g *maker) typedBlock(depth int) {
	i := g.r.IntN(len(g.types))
	t := g.types[i]
	for _, p := range t.Params {
		g.value(p, 1)
	}
	g.with(wasm.Block, wasm.TypedBlock+uint64(i))
	g.labels = append(g.labels, t.Results)
	for range t.Params {
		g.op(wasm.Drop)
	}
	g.statements(depth - 1)
	for _, r := range t.Results {
		g.value(r, 1)
	}
	g.labels = g.labels[:len(g.labels)-1]
	g.end()
	for range t.Results {
		g.op(wasm.Drop)
	}
}

// target is a label that can be branched to with what it takes; loops are not.
func (g *maker) target() (uint64, []byte, bool) {
	for range 4 {
		d := g.r.IntN(len(g.labels))
		types := g.labels[len(g.labels)-1-d]
		if len(types) == 1 && types[0] == 0 {
			continue
		}
		return uint64(d), types, true
	}
	return 0, nil, false
}

func (g *maker) branchIf() {
	d, types, ok := g.target()
	if !ok {
		return
	}
	for _, t := range types {
		g.value(t, 1)
	}
	g.value(wasm.I32, 1)
	g.with(wasm.BrIf, d)
	for range types {
		g.op(wasm.Drop)
	}
}

// leave ends what follows.
func (g *maker) leave() bool {
	switch g.r.IntN(4) {
	case 0:
		for _, t := range g.results {
			g.value(t, 1)
		}
		g.op(wasm.Return)
	case 1:
		if g.r.IntN(4) > 0 {
			return true
		}
		g.op(wasm.Unreachable)
	default:
		d, types, ok := g.target()
		if !ok {
			return true
		}
		for _, t := range types {
			g.value(t, 1)
		}
		g.with(wasm.Br, d)
	}
	return false
}

// dead makes code that is never reached: the stack has whatever it takes there.
func (g *maker) dead() {
	switch g.r.IntN(5) {
	case 0:
		g.op(wasm.I32Add).op(wasm.Drop)
	case 1:
		g.with(wasm.Loop, wasm.EmptyBlock).with(wasm.Br, 0).end()
	case 2:
		g.op(wasm.MemoryFill)
	case 3:
		g.when().op(wasm.Else).end()
	}
}

func (g *maker) callAny() {
	fn := g.r.IntN(len(g.m.Funcs))
	t := g.types[g.m.Funcs[fn]]
	for _, p := range t.Params {
		g.value(p, 1)
	}
	if g.r.IntN(2) == 0 {
		g.call(uint32(fn))
	} else {
		if g.r.IntN(8) == 0 {
			g.value(wasm.I32, 1)
		} else {
			g.i32(int32(fn))
		}
		in := wasm.Instr{Op: wasm.CallIndirect, A: uint64(g.m.Funcs[fn])}
		g.b = in.Append(g.b)
	}
	for range t.Results {
		g.op(wasm.Drop)
	}
}

// length is mostly small.
func (g *maker) length() {
	switch g.r.IntN(8) {
	case 0:
		g.value(wasm.I32, 1)
	case 1:
		g.i32(int32(g.r.IntN(180_000)))
	default:
		g.i32(int32(g.r.IntN(40)))
	}
}

func (g *maker) bulk() {
	switch g.r.IntN(4) {
	case 0:
		g.address()
		g.value(wasm.I32, 1)
		g.length()
		g.op(wasm.MemoryFill)
	case 1, 2:
		g.address()
		g.address()
		g.length()
		g.op(wasm.MemoryCopy)
	default:
		g.address()
		g.i32(int32(g.r.IntN(8))).i32(int32(g.r.IntN(28)))
		g.with(wasm.MemoryInit, 1)
		if g.r.IntN(8) == 0 {
			g.with(wasm.DataDrop, 1)
		}
	}
}

func (g *maker) tableOp() {
	n := int32(len(g.m.Funcs))
	switch g.r.IntN(5) {
	case 0:
		g.with(wasm.RefNull, uint64(wasm.FuncRef)).i32(int32(g.r.IntN(3))).with(wasm.TableGrow, 0).op(wasm.Drop)
	case 1:
		g.i32(n).with(wasm.RefFunc, uint64(g.r.IntN(int(n)))).with(wasm.TableSet, 0)
	case 2:
		g.i32(int32(g.r.IntN(int(n)))).i32(0).i32(int32(g.r.IntN(3))).with(wasm.TableCopy, 0)
	case 3:
		g.i32(0).i32(0).i32(int32(g.r.IntN(int(n) + 1)))
		in := wasm.Instr{Op: wasm.TableInit, A: 1}
		g.b = in.Append(g.b)
	default:
		g.i32(n).with(wasm.RefNull, uint64(wasm.FuncRef)).i32(1).with(wasm.TableFill, 0)
	}
}

var (
	i32Ops = []wasm.Op{0x6a, 0x6b, 0x6c, 0x6d, 0x6e, 0x6f, 0x70, 0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x46, 0x48, 0x49, 0x4f}
	i64Ops = []wasm.Op{0x7c, 0x7d, 0x7e, 0x7f, 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a}
	f32Ops = []wasm.Op{0x92, 0x93, 0x94, 0x95, 0x96, 0x97}
	f64Ops = []wasm.Op{0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5}
)

// value leaves one value of a type on the stack.
func (g *maker) value(t byte, depth int) {
	if depth > 0 {
		switch g.r.IntN(10) {
		case 0, 1, 2:
			g.arithmetic(t, depth)
			return
		case 3:
			g.convert(t, depth)
			return
		case 4:
			g.value(t, depth-1)
			g.value(t, depth-1)
			g.value(wasm.I32, depth-1)
			g.op(wasm.Select)
			return
		case 5:
			if g.size > 0 {
				g.choose(t, depth)
				return
			}
		case 6:
			g.load(t)
			return
		}
	}
	g.leaf(t)
}

func (g *maker) leaf(t byte) {
	for range 3 {
		if l := g.r.IntN(len(g.locals)); g.locals[l] == t {
			g.local(wasm.LocalGet, uint32(l))
			return
		}
	}
	if t == wasm.I32 && g.r.IntN(4) == 0 {
		g.global(wasm.GlobalGet, globalFirst)
		return
	}
	v := int64(g.r.IntN(300) - 100)
	if g.r.IntN(8) == 0 {
		v = int64(g.r.Uint64())
	}
	g.constant(t, v)
}

func (g *maker) arithmetic(t byte, depth int) {
	g.value(t, depth-1)
	g.value(t, depth-1)
	ops := map[byte][]wasm.Op{wasm.I32: i32Ops, wasm.I64: i64Ops, wasm.F32: f32Ops, wasm.F64: f64Ops}[t]
	op := ops[g.r.IntN(len(ops))]
	if (op >= 0x6d && op <= 0x70 || op >= 0x7f && op <= 0x82) && g.r.IntN(8) > 0 {
		// Mostly no division by zero.
		g.constant(t, 1+int64(g.r.IntN(5)))
		g.op(map[byte]wasm.Op{wasm.I32: wasm.I32Or, wasm.I64: 0x84}[t])
	}
	g.op(op)
}

func (g *maker) convert(t byte, depth int) {
	switch t {
	case wasm.I32:
		switch g.r.IntN(5) {
		case 0:
			g.value(wasm.I64, depth-1)
			g.op(0xa7)
		case 1:
			g.value(wasm.F64, depth-1)
			g.op(0xfc02) // saturates
		case 2:
			if g.r.IntN(8) == 0 {
				g.value(wasm.F32, depth-1)
				g.op(0xa8) // may trap
				return
			}
			g.op(wasm.MemorySize)
		case 3:
			g.value(wasm.I32, depth-1)
			g.op(0xfd11)
			g.value(wasm.I32, 0)
			g.op(0xfd11).op(0xfdae) // i32x4.splat, i32x4.add
			in := wasm.Instr{Op: 0xfd1b, Lane: byte(g.r.IntN(4))}
			g.b = in.Append(g.b)
		default:
			g.value(wasm.I32, depth-1)
			g.op([]wasm.Op{0x45, 0x67, 0x68, 0x69, 0xc0, 0xc1}[g.r.IntN(6)])
		}
	case wasm.I64:
		g.value(wasm.I32, depth-1)
		g.op([]wasm.Op{0xac, 0xad}[g.r.IntN(2)])
	case wasm.F32:
		g.value(wasm.I32, depth-1)
		g.op(0xb2)
	default:
		g.value(wasm.I64, depth-1)
		g.op(0xb9)
	}
}

// choose is an if with a result, or a block that is left with it.
func (g *maker) choose(t byte, depth int) {
	g.size--
	if g.r.IntN(2) == 0 {
		g.value(wasm.I32, depth-1)
		g.with(wasm.If, uint64(t))
		g.labels = append(g.labels, []byte{t})
		g.statements(0)
		g.value(t, depth-1)
		g.op(wasm.Else)
		g.value(t, depth-1)
	} else {
		g.with(wasm.Block, uint64(t))
		g.labels = append(g.labels, []byte{t})
		g.statements(0)
		g.value(t, depth-1)
		g.value(wasm.I32, depth-1)
		g.with(wasm.BrIf, 0)
	}
	g.labels = g.labels[:len(g.labels)-1]
	g.end()
}

func (g *maker) load(t byte) {
	g.address()
	op := map[byte][]wasm.Op{wasm.I32: {0x28, 0x2c, 0x2d, 0x2e}, wasm.I64: {0x29, 0x30, 0x33, 0x34}, wasm.F32: {0x2a}, wasm.F64: {0x2b}}[t]
	in := wasm.Instr{Op: op[g.r.IntN(len(op))], B: uint64(g.r.IntN(200))}
	g.b = in.Append(g.b)
}
