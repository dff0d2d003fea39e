package meter

import (
	"math/bits"

	"github.com/ostrodb/ostro/tenant/extension/wasm"
)

// merges estimates how long the compiler takes for a function. Where branches meet, each local that is read later on may
// have one of several values, and the compiler looks which of them really have: it looks at all of them for each, and
// again for each loop around a loop. And for all that lives there, operands among it, it has to find registers.
//
//	effort := Σ over places where branches meet: branches × (locals² × (1 + how deep loops are nested) + 64 × (locals + operands))
//	        + Σ over branches that may not be taken: 64 × (locals + operands)
//
// A unit takes some nanoseconds.
//
// Which locals are read later on is found by going through the function backwards, until no loop needs more at its
// beginning than the time before: about as often as loops are nested.
type merges struct {
	words   int // of a set of locals
	steps   []step
	tables  []uint32 // blocks that br_tables lead to
	blocks  []place
	open    []uint32 // blocks, the innermost last
	loops   int      // that are open
	headers int      // loops, all of them
	depth   int      // of loops, at most
	height  int      // of the operand stack, no less than it is
	most    int      // that it was
	dead    bool     // what follows is never reached

	beside int // operands on the stack at all branches that may not be taken
	alive  int // locals that live there

	sets []uint64 // of blocks, the n-th from n*words on
	live []uint64
}

// step is an instruction that matters.
type step struct {
	op wasm.Op
	a  uint32 // a local, a block, or where labels begin in tables
	b  uint32 // how many labels
}

// place is where branches to a block lead. After an if comes another one, for what its else needs.
type place struct {
	loop, when, forks bool // when: it is an if; forks: that has an else
	values            int  // that branches bring
	branches          int
	below             int // operands that stay on the stack meanwhile
	takes             int
	leaves            int
}

// begin forgets the function before.
func (g *merges) begin(locals int) {
	g.words = (locals + 63) / 64
	g.steps, g.tables, g.blocks, g.open = g.steps[:0], g.tables[:0], g.blocks[:0], g.open[:0]
	g.loops, g.headers, g.depth, g.height, g.most, g.beside, g.dead = 0, 0, 0, 0, 0, 0, false
	g.enter(place{})
}

func (g *merges) enter(p place) {
	p.below = max(g.height-p.takes, 0)
	g.open = append(g.open, uint32(len(g.blocks)))
	g.blocks = append(g.blocks, p)
}

// take notes an instruction.
func (g *merges) take(m *wasm.Module, in *wasm.Instr) {
	g.height = max(g.height+change(m, in), 0)
	g.most = max(g.most, g.height)
	switch in.Op {
	case wasm.Block, wasm.Loop, wasm.If:
		g.begins(m, in)
		g.dead = false
	case wasm.Else:
		g.otherwise()
		g.dead = false
	case wasm.End:
		g.end()
		g.dead = false
	default:
		if !g.dead {
			g.straight(in)
		}
	}
}

// straight notes an instruction that no block begins or ends with. What follows one that always leads elsewhere is never
// reached, up to where blocks begin or end; it is not noted, for there may be much of it.
func (g *merges) straight(in *wasm.Instr) {
	switch in.Op {
	case wasm.LocalGet, wasm.LocalSet, wasm.LocalTee:
		g.note(in.Op, uint32(in.A), 0)
	case wasm.Br:
		g.note(in.Op, g.target(uint32(in.A)), 0)
	case wasm.BrIf:
		g.beside += g.height
		g.note(in.Op, g.target(uint32(in.A)), 0)
	case wasm.BrTable:
		g.note(in.Op, uint32(len(g.tables)), uint32(len(in.Labels)))
		for _, label := range in.Labels {
			g.tables = append(g.tables, g.target(label))
		}
	case wasm.Return, wasm.Unreachable:
		g.note(in.Op, 0, 0)
	}
	g.dead = leaves(in.Op)
}

// leaves tells of instructions behind which nothing is reached.
func leaves(op wasm.Op) bool {
	return op == wasm.Br || op == wasm.BrTable || op == wasm.Return || op == wasm.Unreachable
}

func (g *merges) begins(m *wasm.Module, in *wasm.Instr) {
	takes, leaves := arity(m, in.A)
	switch in.Op {
	case wasm.Block:
		g.enter(place{takes: takes, leaves: leaves, values: leaves})
	case wasm.Loop:
		g.enter(place{takes: takes, leaves: leaves, values: takes, loop: true, branches: 1})
		g.note(in.Op, g.inner(), 0)
		g.headers++
		g.loops++
		g.depth = max(g.depth, g.loops)
	case wasm.If:
		g.enter(place{takes: takes, leaves: leaves, values: leaves, when: true, branches: 1})
		g.note(in.Op, g.inner(), 0)
		g.blocks = append(g.blocks, place{})
	}
}

func (g *merges) note(op wasm.Op, a, b uint32) { g.steps = append(g.steps, step{op, a, b}) }

func (g *merges) inner() uint32 { return g.open[len(g.open)-1] }

// otherwise notes an else. One that belongs to no if means nothing here: the compiler refuses it.
func (g *merges) otherwise() {
	b := &g.blocks[g.inner()]
	if b.when && !b.forks {
		b.forks = true
		g.height = b.below + b.takes
		g.note(wasm.Else, g.inner(), 0)
	}
}

func (g *merges) end() {
	b := &g.blocks[g.inner()]
	if b.loop {
		g.loops--
	}
	g.height = b.below + b.leaves
	g.note(wasm.End, g.inner(), 0)
	g.open = g.open[:len(g.open)-1]
}

func (g *merges) target(label uint32) uint32 {
	block := g.open[len(g.open)-1-int(label)]
	g.blocks[block].branches++
	return block
}

// effort tells what the function costs, in steps of the compiler.
func (g *merges) effort() int {
	n := (len(g.blocks) + 1) * g.words
	g.sets = append(g.sets[:0], make([]uint64, n)...)
	g.live = g.sets[n-g.words:]
	for passes := g.depth + 2; passes > 0 && g.back(); passes-- {
	}
	sum := 64 * (g.alive + g.beside)
	for i, b := range g.blocks {
		if b.branches > 0 {
			values := b.values + count(g.set(uint32(i)))
			sum += (b.branches + 1) * (values*values*(1+g.depth) + 64*(values+b.below))
		}
	}
	return sum
}

func (g *merges) set(block uint32) []uint64 {
	return g.sets[int(block)*g.words : (int(block)+1)*g.words]
}

// back goes through the function once, and reports whether a loop needs more than was known.
func (g *merges) back() (more bool) {
	g.alive = 0
	for i := len(g.steps) - 1; i >= 0; i-- {
		s := &g.steps[i]
		switch s.op {
		case wasm.LocalGet:
			g.live[s.a/64] |= 1 << (s.a % 64)
		case wasm.LocalSet, wasm.LocalTee:
			g.live[s.a/64] &^= 1 << (s.a % 64)
		case wasm.Loop:
			more = join(g.set(s.a), g.live) || more
		case wasm.If:
			join(g.live, g.set(g.skips(s.a)))
		case wasm.Else:
			copy(g.set(s.a+1), g.live)
			copy(g.live, g.set(s.a))
		case wasm.End:
			if !g.blocks[s.a].loop {
				copy(g.set(s.a), g.live)
			}
		case wasm.Br:
			copy(g.live, g.set(s.a))
		case wasm.BrIf:
			g.alive += count(g.live)
			join(g.live, g.set(s.a))
		case wasm.BrTable:
			clear(g.live)
			for _, block := range g.tables[s.a : s.a+s.b] {
				join(g.live, g.set(block))
			}
		default: // Nothing is read behind it.
			clear(g.live)
		}
	}
	clear(g.live)
	return more
}

// skips is where an if leads to whose condition does not hold.
func (g *merges) skips(block uint32) uint32 {
	if g.blocks[block].forks {
		return block + 1
	}
	return block
}

// join adds what another set has, and reports whether that is more.
func join(to, from []uint64) (more bool) {
	for i, w := range from {
		more = more || w&^to[i] != 0
		to[i] |= w
	}
	return more
}

func count(set []uint64) (n int) {
	for _, w := range set {
		n += bits.OnesCount64(w)
	}
	return n
}

// arity is how many values a block of a type takes and leaves.
func arity(m *wasm.Module, t uint64) (takes, leaves int) {
	switch {
	case t == wasm.EmptyBlock:
		return 0, 0
	case t < wasm.TypedBlock:
		return 0, 1
	}
	f := &m.Types[t-wasm.TypedBlock]
	return len(f.Params), len(f.Results)
}
