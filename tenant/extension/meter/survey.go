package meter

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ostrodb/ostro/tenant/extension/wasm"
)

// info is what is known about a function of the module's own before it is rewritten.
type info struct {
	cost     uint64 // of all its instructions, once each
	blocks   int
	loops    bool
	bulk     bool
	moves    int      // memory.copy and memory.fill
	hosts    int      // calls of imports
	calls    []uint32 // own functions, without their base, in order
	sites    []int    // from how many places each of them is called
	indirect []uint32 // types
	frame    uint64   // an estimate of its bytes on the stack

	inTable   bool // calls by table can reach it
	recursive bool
	counts    bool // keeps account of the stack
	looks     bool // what it calls, or does itself, may look at the fuel
	small     bool // is paid for by its callers
	smallCost uint64
}

// facts are about the module as a whole.
type facts struct {
	infos    []info
	grows    bool     // tables do, while it runs
	mutates  bool     // tables or segments change while it runs
	referred []uint32 // own functions that calls by table can reach
	named    []uint32 // functions that code names by ref.func, each once
}

// survey reads all code once.
func survey(m *wasm.Module, l Limits) (*facts, error) {
	f := &facts{infos: make([]info, len(m.Code))}
	referred := make([]bool, len(m.Code))
	declared, named := declaredFuncs(m), map[uint32]bool{}
	refer := func(fn uint64) {
		if own := int(fn) - m.ImportedFuncs(); own >= 0 {
			referred[own] = true
		}
	}
	for _, e := range m.Elems {
		for _, c := range e.Init {
			if c.Instr.Op == wasm.RefFunc {
				refer(c.Instr.A)
			}
		}
	}
	for _, g := range m.Globals {
		if g.Init.Instr.Op == wasm.RefFunc {
			refer(g.Init.Instr.A)
		}
	}
	var sum work
	var g merges
	for own := range m.Code {
		name := func(fn uint64) {
			refer(fn)
			named[uint32(fn)] = true
		}
		if err := f.surveyOne(m, own, name, &g); err != nil {
			return nil, err
		}
		w, err := f.work(m, own, &g, l)
		if err != nil {
			return nil, fmt.Errorf("function %d: %w", own+m.ImportedFuncs(), err)
		}
		sum.squares += w.squares
		sum.effort += w.effort
	}
	err := firstError(
		within("squares of the functions' blocks", sum.squares, l.BlockSquares),
		within("steps for the compiler where branches meet", sum.effort, l.Efforts),
	)
	if err != nil {
		return nil, fmt.Errorf("%w: split it into several modules", err)
	}
	for own, is := range referred {
		if is {
			f.referred = append(f.referred, uint32(own))
			f.infos[own].inTable = true
		}
	}
	f.named = slices.Sorted(maps.Keys(named))
	if err := within("functions that code refers to", len(f.named), l.Globals); err != nil {
		return nil, err
	}
	for _, fn := range f.named {
		if !declared[fn] {
			return nil, refuse("the module refers to function %d, which it does not declare", fn)
		}
	}
	f.callGraph(m, l)
	f.findSmall()
	return f, nil
}

// work is what the compiler has to do.
type work struct{ squares, effort int }

// moveBlocks is what a copy or a fill counts for that is done in its place: two ways, of which one may be the compiler's loop.
const moveBlocks = 4

// inlineBlocks is how many blocks a function may have whose copies and fills are done in their place: those of others are
// left to functions, lest they bring more blocks than the code has itself.
const inlineBlocks = 1000

func (fi *info) inlines() bool { return fi.blocks+moveBlocks*fi.moves <= inlineBlocks }

// loopBlocks is what a loop counts for, besides itself: it looks at the fuel, and branches there.
const loopBlocks = 2

// work tells how much of it a function is, or that it is too much.
func (f *facts) work(m *wasm.Module, own int, g *merges, l Limits) (work, error) {
	fi := &f.infos[own]
	locals, blocks := int(m.NumLocals(own)), fi.blocks+loopBlocks*g.headers
	if fi.inlines() {
		blocks += moveBlocks * fi.moves
	}
	err := firstError(
		within("blocks and branches in one function", blocks, l.Blocks),
		within("locals times blocks in one function", (locals+1)*blocks, l.LocalBlocks),
		within("loops in each other", g.depth, l.LoopDepth),
		within("operands on the stack at a time in one function", g.most, l.Operands),
	)
	if err != nil {
		return work{}, fmt.Errorf("%w: split the function", err)
	}
	effort := g.effort()
	if err := within("steps for the compiler where branches of one function meet", effort, l.Effort); err != nil {
		return work{}, fmt.Errorf("%w: it has %d locals, %d blocks and branches, loops %d deep and up to %d operands on the stack; split the function",
			err, locals, blocks, g.depth, g.most)
	}
	return work{blocks * blocks, effort}, nil
}

// declaredFuncs are those that code may name: they occur in segments, in globals or in exports.
func declaredFuncs(m *wasm.Module) map[uint32]bool {
	all := map[uint32]bool{}
	add := func(c *wasm.Const) {
		if c.Instr.Op == wasm.RefFunc {
			all[uint32(c.Instr.A)] = true
		}
	}
	for i := range m.Elems {
		for j := range m.Elems[i].Init {
			add(&m.Elems[i].Init[j])
		}
	}
	for i := range m.Globals {
		add(&m.Globals[i].Init)
	}
	for _, e := range m.Exports {
		if e.Kind == wasm.KindFunc {
			all[e.Index] = true
		}
	}
	return all
}

func (f *facts) surveyOne(m *wasm.Module, own int, refer func(uint64), g *merges) error {
	fi := &f.infos[own]
	body := m.Body(own)
	called := map[uint32]int{}
	byType := map[uint32]bool{}
	var in wasm.Instr
	n := uint64(0)
	g.begin(int(m.NumLocals(own)))
	for body.Next(&in) {
		n++
		g.take(m, &in)
		fi.cost += cost(&in)
		switch in.Op {
		case wasm.Loop:
			fi.loops = true
			fi.blocks++
		case wasm.Block, wasm.If, wasm.Else, wasm.BrIf:
			fi.blocks++
		case wasm.BrTable:
			fi.blocks += len(in.Labels)
		case wasm.MemoryCopy, wasm.MemoryFill:
			fi.moves++
		case wasm.Call:
			if callee := int(in.A) - m.ImportedFuncs(); callee >= 0 {
				called[uint32(callee)]++
			} else {
				fi.hosts++
			}
		case wasm.CallIndirect:
			byType[uint32(in.A)] = true
		case wasm.RefFunc:
			refer(in.A)
		case wasm.TableSet, wasm.TableGrow, wasm.TableFill, wasm.TableCopy, wasm.TableInit, wasm.ElemDrop, wasm.DataDrop:
			f.mutates = true
			if in.Op == wasm.TableFill {
				fi.blocks += moveBlocks
			}
			f.grows = f.grows || in.Op == wasm.TableGrow
		}
		fi.bulk = fi.bulk || isBulk(in.Op)
	}
	if err := body.Err(); err != nil {
		return fmt.Errorf("function %d: %w", own+m.ImportedFuncs(), err)
	}
	fi.calls = slices.Sorted(maps.Keys(called))
	for _, c := range fi.calls {
		fi.sites = append(fi.sites, called[c])
	}
	for t := range byType {
		fi.indirect = append(fi.indirect, t)
	}
	fi.frame = frame(m, own, n)
	return nil
}

// frame estimates what a call of the function takes on the stack: where its arguments and results are passed, where those and its
// locals are kept, and as much of the operand stack as its instructions could fill if every eighth of them left a value there for
// long. The compiler passes and keeps a vector in 16 bytes and all else in 8, and gives no place of a frame to two values.
func frame(m *wasm.Module, own int, instrs uint64) uint64 {
	t := &m.Types[m.Funcs[own]]
	bytes := 64 + instrs + min(2*instrs, savedBytes) + widths(t.Params) + passed(t.Params) + passed(t.Results)
	for _, run := range m.Code[own].Locals {
		bytes += width(run.Type) * uint64(run.N)
	}
	return bytes
}

// savedBytes is what a function keeps of its caller's registers at most: 13 of 16 bytes each.
const savedBytes = 13 * 16

func widths(types []byte) (sum uint64) {
	for _, t := range types {
		sum += width(t)
	}
	return sum
}

// Arguments and results are passed in so many registers at least, of either kind, and others on the stack.
const (
	intRegisters   = 6
	floatRegisters = 8
)

// passed is what is passed on the stack.
func passed(types []byte) (sum uint64) {
	ints, floats := 0, 0
	for _, t := range types {
		switch t {
		case wasm.F32, wasm.F64, wasm.V128:
			if floats++; floats > floatRegisters {
				sum += width(t)
			}
		default:
			if ints++; ints > intRegisters {
				sum += width(t)
			}
		}
	}
	return sum
}

func width(t byte) uint64 {
	if t == wasm.V128 {
		return 16
	}
	return 8
}

// tableElements is how many elements the tables have, or may have if they grow, and how many an instance keeps besides.
func (f *facts) tableElements(m *wasm.Module) (sum int) {
	for _, t := range m.Tables {
		if f.grows {
			sum += int(t.Max)
		} else {
			sum += int(t.Min)
		}
	}
	for _, e := range m.Elems {
		if e.Mode == wasm.Passive {
			sum += len(e.Init)
		}
	}
	return sum
}

const (
	// smallMost is what a function costs at most that its callers pay for.
	smallMost = 256
	// tableMost is that of functions in tables: whoever calls by table pays for the largest.
	tableMost = 64
)

// findSmall finds functions without loops that are on the stack once at most. What they call, and is not small, charges
// by itself.
func (f *facts) findSmall() {
	for own := range f.infos {
		f.isSmall(uint32(own), 0)
	}
}

func (f *facts) isSmall(own uint32, depth int) bool {
	fi := &f.infos[own]
	if fi.small || fi.smallCost > 0 {
		return fi.small
	}
	fi.smallCost = fi.cost + 1 // Also a mark: it was looked at.
	fi.looks = true
	if fi.loops || fi.counts || depth > 8 {
		return false
	}
	looks := fi.bulk || len(fi.indirect) > 0
	fi.smallCost += uint64(fi.hosts) * hostCost
	for i, c := range fi.calls {
		if f.isSmall(c, depth+1) {
			fi.smallCost += f.infos[c].smallCost * uint64(fi.sites[i])
		}
		looks = looks || f.infos[c].looks
	}
	most := uint64(smallMost)
	if fi.inTable {
		most = tableMost
	}
	fi.small = fi.smallCost <= most
	fi.looks = looks || !fi.small
	return fi.small
}
