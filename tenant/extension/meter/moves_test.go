package meter

import (
	"fmt"
	"testing"

	"github.com/ostrodb/ostro/tenant/extension/wasm"
)

// moving is a module whose function f takes a round of so many fills and copies, and returns a sum of what they left.
func moving(moves int) *wasm.Module {
	c := new(code).with(wasm.Loop, wasm.EmptyBlock)
	for i := range int32(moves) {
		size := i%3*600 + 1 // Some are large.
		c.i32(i * 7 % 4096).i32(i).i32(size).op(wasm.MemoryFill)
		c.i32(i * 5 % 4096).i32(i * 3 % 4096).i32(size).op(wasm.MemoryCopy)
	}
	c.local(wasm.LocalGet, 0).i32(1).op(wasm.I32Sub).local(wasm.LocalTee, 0).with(wasm.BrIf, 0).end()
	c.i32(0)
	for at := range int32(1200) {
		c.i32(31).op(wasm.I32Mul).i32(at * 4).add(&wasm.Instr{Op: wasm.I32Load, A: 2}).op(wasm.I32Add)
	}
	return &wasm.Module{
		Types: []wasm.FuncType{{Params: []byte{wasm.I32}, Results: []byte{wasm.I32}}}, Funcs: []uint32{0},
		Memories: []wasm.Limits{{Min: 1}}, Code: []wasm.Code{{Body: c.end().b}},
		Exports: []wasm.Export{{Name: "f", Kind: wasm.KindFunc}},
	}
}

func TestCopiesAndFillsDoTheSameWhereverTheyAreDone(t *testing.T) {
	for _, moves := range []int{20, 1700} { // in their place; by functions
		t.Run(fmt.Sprint(moves), func(t *testing.T) {
			p := newPair(t, moving(moves).Encode())
			defer p.close()
			p.renew(t)
			*p.tank = tank{slice: 1000, left: 1 << 40}
			plain, metered := p.call(0, "f", []uint64{2}), p.call(1, "f", []uint64{2})
			if plain.err != "" || fmt.Sprint(plain) != fmt.Sprint(metered) {
				t.Errorf("%v, and with metering %v", plain, metered)
			}
		})
	}
}

func TestManyCopiesAreNoReasonToRefuse(t *testing.T) {
	if _, err := Rewrite(moving(2000).Encode(), DefaultLimits()); err != nil {
		t.Error(err)
	}
}
