package meter

import "github.com/ostrodb/ostro/tenant/extension/wasm"

// A region is code that is entered at one place only, and executed at most once
// for each time that it is entered: a part of a loop's body, an arm of an if,
// what follows a conditional branch. Its cost is charged where it begins, so all
// of it is paid before any of it runs. Code that may be skipped is a region of
// its own, lest a function pay for all it could have done; small regions are
// folded into what they are part of, lest charging cost more than they do.
type region struct {
	parent int
	at     int // number of the instruction that it begins with
	cost   uint64
	folded uint64 // of cost: what came from smaller ones
	head   bool   // of a loop that is repeated: stands for itself
	loop   int    // innermost loop that it is in, -1 outside
	gone   bool   // folded into its parent
}

const (
	foldMost    = 128 // what a region costs at most that is folded
	foldSumMost = 192 // what all that is folded into one region costs at most, besides as much as the region itself
)

// frameOf is a block that is open while code is read.
type frameOf struct {
	op      wasm.Op
	outer   int  // region in which it began
	head    int  // region at a loop's head
	loop    int  // innermost loop outside
	escaped bool // something within branches over its end
	dead    bool // it began in code that is never reached
}

// plan is where a function charges how much.
type plan struct {
	regions []region
	loops   []uint64 // types of their blocks
	repeats bool     // has a loop that repeats

	cur    int
	loop   int
	dead   bool
	frames []frameOf
}

// plan reads a function's code and says where to charge.
func (w *rewriter) plan(own int) (*plan, error) {
	p := &plan{loop: -1}
	p.regions = append(p.regions, region{parent: -1, loop: -1})
	p.frames = append(p.frames, frameOf{op: wasm.Block, loop: -1})
	body := w.m.Body(own)
	var in wasm.Instr
	for i := 0; body.Next(&in); i++ {
		w.step(p, &in, i)
	}
	if err := body.Err(); err != nil {
		return nil, err
	}
	p.fold()
	return p, nil
}

func (w *rewriter) step(p *plan, in *wasm.Instr, i int) {
	switch in.Op {
	case wasm.Block:
		p.open(in.Op)
	case wasm.Loop:
		p.open(in.Op)
		p.loops = append(p.loops, in.A)
		p.loop = len(p.loops) - 1
		p.begin(p.cur, i+1)
		p.frames[len(p.frames)-1].head = p.cur
	case wasm.If:
		p.charge(cost(in))
		p.open(in.Op)
		p.begin(p.cur, i+1)
	case wasm.Else:
		f := &p.frames[len(p.frames)-1]
		p.dead = f.dead
		p.begin(f.outer, i+1)
	case wasm.End:
		p.close(i)
	default:
		w.stepPlain(p, in, i)
	}
}

func (w *rewriter) stepPlain(p *plan, in *wasm.Instr, i int) {
	if p.dead {
		return
	}
	p.charge(cost(in))
	switch in.Op {
	case wasm.Br:
		p.branch(in.A)
		p.dead = true
	case wasm.BrIf:
		p.branch(in.A)
		p.begin(p.cur, i+1)
	case wasm.BrTable:
		for _, l := range in.Labels {
			p.branch(uint64(l))
		}
		p.dead = true
	case wasm.Return:
		p.branch(uint64(len(p.frames) - 1))
		p.dead = true
	case wasm.Unreachable:
		p.dead = true
	case wasm.Call:
		w.stepCall(p, in)
	}
}

func (w *rewriter) stepCall(p *plan, in *wasm.Instr) {
	own := int(in.A) - w.oldBase
	switch {
	case own < 0:
		p.charge(hostCost)
	case w.f.infos[own].small:
		p.charge(w.f.infos[own].smallCost)
	}
}

func (p *plan) charge(n uint64) {
	if !p.dead {
		p.regions[p.cur].cost += n
	}
}

func (p *plan) begin(parent, at int) {
	if p.dead {
		return
	}
	p.regions = append(p.regions, region{parent: parent, at: at, loop: p.loop})
	p.cur = len(p.regions) - 1
}

func (p *plan) open(op wasm.Op) {
	p.frames = append(p.frames, frameOf{op: op, outer: p.cur, head: p.cur, loop: p.loop, dead: p.dead})
}

// close ends a block. What follows belongs to the region that the block began in, unless it may have been skipped.
func (p *plan) close(i int) {
	f := p.frames[len(p.frames)-1]
	p.frames = p.frames[:len(p.frames)-1]
	p.dead, p.cur, p.loop = f.dead, f.outer, f.loop
	if f.escaped && len(p.frames) > 0 {
		p.begin(f.outer, i+1)
	}
}

// branch notes a jump to a label: what follows the blocks that it leaves is skipped.
func (p *plan) branch(label uint64) {
	target := len(p.frames) - 1 - int(label)
	for i := target + 1; i < len(p.frames); i++ {
		p.frames[i].escaped = true
	}
	if f := &p.frames[target]; f.op == wasm.Loop && !f.dead {
		p.regions[f.head].head = true
		p.repeats = true
	}
}

// fold adds small regions to what they are part of. Regions that came later are never the parents of earlier ones.
func (p *plan) fold() {
	first := &p.regions[0]
	first.cost = max(first.cost, 1) // It looks at the fuel, for those who do not.
	for i := len(p.regions) - 1; i > 0; i-- {
		r := &p.regions[i]
		if r.head {
			r.cost = max(r.cost, 1)
			continue
		}
		to := &p.regions[r.parent]
		own := to.cost - to.folded
		if r.cost == 0 || r.cost <= foldMost && to.folded+r.cost <= foldSumMost+own {
			to.cost += r.cost
			to.folded += r.cost
			r.gone = true
		}
	}
}
