package meter

import "github.com/ostrodb/ostro/tenant/extension/wasm"

// A loop that charges gets a loop around it:
//
//	block                  what the loop leaves
//	  loop
//	    block
//	      loop             the module's
//	        charge, and leave the block if that is too much
//	        ...
//	      end
//	      br out
//	    end
//	    get fuel           and what was charged, for it is charged again
//	    br to the loop around
//	  end
//	end
//
// So the loop has no call but its own, for which the compiler would have to keep values out of registers, and what is
// repeated has no branch that is taken but its own.

// wrapBlocks is how many blocks a function may have whose loops are wrapped: compilation takes time by their square.
const wrapBlocks = 400

// around is how many blocks are around a wrapped loop.
const around = 3

// wraps tells whether a region is the head of a loop that gets one around it.
func (e *emitter) wraps(r *region) bool {
	if r.gone || !r.head || r.loop < 0 || e.fi.blocks > wrapBlocks {
		return false
	}
	return e.way == inLocal && !e.takes(e.p.loops[r.loop])
}

// takes tells of blocks that take operands.
func (e *emitter) takes(typ uint64) bool {
	return typ >= wasm.TypedBlock && len(e.m.Types[typ-wasm.TypedBlock].Params) > 0
}

// headOf is the region of a loop that the next instruction begins, if it charges.
func (e *emitter) headOf(at int) *region {
	if e.p == nil {
		return nil
	}
	for i := e.next; i < len(e.p.regions) && e.p.regions[i].at <= at; i++ {
		if r := &e.p.regions[i]; r.at == at && e.wraps(r) {
			return r
		}
	}
	return nil
}

func (e *emitter) openLoop(in *wasm.Instr) {
	r := e.headOf(e.at + 1)
	e.outer = append(e.outer, r != nil)
	if r != nil {
		e.wrapped = append(e.wrapped, r.cost)
		e.with(wasm.Block, in.A).with(wasm.Loop, wasm.EmptyBlock).with(wasm.Block, wasm.EmptyBlock)
	}
	e.add(in)
}

// closeBlock writes an end, and what is behind it. It reports false for the function's own, which the caller writes.
func (e *emitter) closeBlock() bool {
	if len(e.outer) == 0 {
		if e.frame {
			e.end()
			e.finish()
		}
		return false
	}
	wrapped := e.outer[len(e.outer)-1]
	e.outer = e.outer[:len(e.outer)-1]
	e.end()
	if wrapped {
		cost := e.wrapped[len(e.wrapped)-1]
		e.wrapped = e.wrapped[:len(e.wrapped)-1]
		e.with(wasm.Br, around-1).end()
		e.refill()
		e.code.local(wasm.LocalGet, e.local).i64(int64(cost)).op(wasm.I64Add).local(wasm.LocalSet, e.local)
		e.with(wasm.Br, 0).end().op(wasm.Unreachable).end()
	}
	return true
}

// label is a label with the loops in between that have blocks around them. The last one is the function itself.
func (e *emitter) label(l uint64) uint64 {
	n := l
	for i := range min(int(l), len(e.outer)) {
		if e.outer[len(e.outer)-1-i] {
			n += around
		}
	}
	return n
}
