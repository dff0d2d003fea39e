package meter

import (
	"fmt"

	"github.com/ostrodb/ostro/tenant/extension/wasm"
)

// Behind each call the compiler loads anew what the call may have changed: every mutable global, used or not, and where the
// memory is. And what one instruction says takes it dozens, if that one looks into a table, calls the runtime, or can trap.
//
//	steps := Σ over calls, added ones among them: mutable globals + callSteps
//	       + Σ over instructions: weights
//
// A step takes the compiler up to a microsecond and 200 bytes, of which it gives back none before the function's end.

// callSteps is for the call itself and for where the memory is.
const callSteps = 8

// weights are of instructions without a prefix; of others see weight.
var weights = heavy()

func heavy() (w [256]uint8) {
	w[wasm.CallIndirect] = 75
	w[wasm.TableGet], w[wasm.TableSet], w[wasm.MemoryGrow] = 30, 30, 30
	for _, division := range []int{0x6d, 0x7f} { // div_s div_u rem_s rem_u, of i32 and i64
		for i := range 4 {
			w[division+i] = 30
		}
	}
	for _, truncation := range []int{0xa8, 0xae} { // of f32 and f64, to i32 and i64
		for i := range 4 {
			w[truncation+i] = 35
		}
	}
	w[0xb5], w[0xba] = 20, 20 // u64 to f32 and f64
	return w
}

// weight is how many steps an instruction takes besides those behind calls.
func weight(op wasm.Op) int {
	switch {
	case op <= 0xff:
		return int(weights[op])
	case op == wasm.TableFill: // a loop
		return 250
	case op == wasm.TableGrow:
		return 30
	case op < wasm.MemoryInit: // truncations that saturate
		return 20
	case op == 0xfd62: // i8x16.popcnt
		return 15
	case isBulk(op):
		return 120
	}
	return 0
}

// steps is what the compiler has to do for code that was written.
func (w *rewriter) steps(c *code) int { return c.calls*w.perCall + c.weight }

// countMutable says what a call costs, once all globals are there.
func (w *rewriter) countMutable() {
	w.perCall = callSteps
	for _, g := range w.m.Globals {
		if g.Mutable {
			w.perCall++
		}
	}
}

// checkSteps adds those of a function.
func (w *rewriter) checkSteps(c *code) error {
	steps := w.steps(c)
	w.sum += steps
	if err := within("steps for the compiler at calls and long instructions in one function", steps, w.l.CallSteps); err != nil {
		return fmt.Errorf("%w: it has %d calls, those for its fuel among them, of %d steps each, for the module has %d mutable globals, and %d steps for tables, growth, divisions and conversions; split the function",
			err, c.calls, w.perCall, w.perCall-callSteps, c.weight)
	}
	return nil
}

// checkSum checks those of all functions.
func (w *rewriter) checkSum() error {
	if err := within("steps for the compiler at calls and long instructions", w.sum, w.l.CallStepsSum); err != nil {
		return fmt.Errorf("%w: each call takes %d, for it has %d mutable globals; split it into several modules, or have fewer of those",
			err, w.perCall, w.perCall-callSteps)
	}
	return nil
}
