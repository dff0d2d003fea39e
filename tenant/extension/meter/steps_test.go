package meter

import (
	"errors"
	"testing"

	"github.com/ostrodb/ostro/tenant/extension/wasm"
)

// stepsOf is what the compiler takes for all functions of a rewritten module.
func stepsOf(t *testing.T, m *wasm.Module) int {
	t.Helper()
	none := DefaultLimits()
	none.CallStepsSum = -1
	var limit *LimitError
	if _, err := Rewrite(m.Encode(), none); !errors.As(err, &limit) {
		t.Fatal(err)
	}
	return limit.Has
}

func TestEachCallTakesAStepForEachMutableGlobal(t *testing.T) {
	module := func(calls, mutable, constant int) *wasm.Module {
		c := new(code)
		for range calls {
			c.call(1)
		}
		m := &wasm.Module{Types: []wasm.FuncType{{}}, Funcs: []uint32{0, 0}, Code: []wasm.Code{{Body: c.end().b}, {Body: []byte{0x0b}}}}
		for i := range mutable + constant {
			m.Globals = append(m.Globals, wasm.Global{GlobalType: wasm.GlobalType{Type: wasm.I32, Mutable: i < mutable}, Init: wasm.Const{Instr: wasm.Instr{Op: wasm.I32Const}}})
		}
		return m
	}
	const own = 2 // the fuel and the stack
	for _, mutable := range []int{0, 1, 100} {
		for _, calls := range []int{1, 50} {
			got := stepsOf(t, module(calls, mutable, 3)) - stepsOf(t, module(0, mutable, 3))
			if want := calls * (mutable + own + callSteps); got != want {
				t.Errorf("%d calls, %d mutable globals: %d steps, want %d", calls, mutable, got, want)
			}
		}
	}
}

// A function that is repeated asks for fuel, by a call that the module does not have.
func TestCallsThatAreAddedTakeStepsToo(t *testing.T) {
	module := func(body ...byte) *wasm.Module {
		return &wasm.Module{
			Types: []wasm.FuncType{{}}, Funcs: []uint32{0}, Memories: []wasm.Limits{{Min: 1}},
			Code: []wasm.Code{{Body: append(body, 0x0b)}},
		}
	}
	const call = 2 + callSteps
	idle := stepsOf(t, module())
	for what, c := range map[string]struct {
		body []byte
		want int
	}{
		"a loop looks at the fuel, and so does its function": {[]byte{0x03, 0x40, 0x0c, 0, 0x0b}, 2 * call},
		"who grows memory pays for it":                       {[]byte{0x41, 0, 0x40, 0, 0x1a}, call + weight(wasm.MemoryGrow)},
	} {
		if got := stepsOf(t, module(c.body...)) - idle; got != c.want {
			t.Errorf("%s: %d steps, want %d", what, got, c.want)
		}
	}
}
