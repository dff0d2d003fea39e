package meter

import (
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/ostrodb/ostro/tenant/extension/wasm"
)

// operandsOf are what instructions take.
var operandsOf = [][]byte{
	{},
	{wasm.I32},
	{wasm.I64},
	{wasm.F32},
	{wasm.F64},
	{wasm.V128},
	{wasm.FuncRef},
	{wasm.I32, wasm.I32},
	{wasm.I64, wasm.I64},
	{wasm.F32, wasm.F32},
	{wasm.F64, wasm.F64},
	{wasm.V128, wasm.V128},
	{wasm.I32, wasm.I64},
	{wasm.I32, wasm.F32},
	{wasm.I32, wasm.F64},
	{wasm.I32, wasm.V128},
	{wasm.I32, wasm.FuncRef},
	{wasm.V128, wasm.I32},
	{wasm.V128, wasm.I64},
	{wasm.V128, wasm.F32},
	{wasm.V128, wasm.F64},
	{wasm.FuncRef, wasm.I32},
	{wasm.I32, wasm.I32, wasm.I32},
	{wasm.V128, wasm.V128, wasm.V128},
	{wasm.I32, wasm.FuncRef, wasm.I32},
}

// balanced is a function that has an instruction's operands, the instruction, and drops what is left if it changes the
// height as is said here; nil: it has not enough of them.
func balanced(in *wasm.Instr, operands []byte) *wasm.Module {
	m := &wasm.Module{
		Types: []wasm.FuncType{{}}, Funcs: []uint32{0},
		Memories: []wasm.Limits{{Min: 1}},
		Tables:   []wasm.Table{{Type: wasm.FuncRef}},
		Globals:  []wasm.Global{{GlobalType: wasm.GlobalType{Type: wasm.I32, Mutable: true}, Init: wasm.Const{Instr: wasm.Instr{Op: wasm.I32Const}}}},
		Elems:    []wasm.Elem{{Mode: wasm.Declared, Type: wasm.FuncRef, Init: []wasm.Const{{Instr: wasm.Instr{Op: wasm.RefFunc}}}}},
		Datas:    []wasm.Data{{Mode: wasm.Passive}}, Counted: true,
	}
	left := len(operands) + change(m, in)
	if left < 0 {
		return nil
	}
	c := new(code)
	push := map[byte]wasm.Instr{
		wasm.I32: {Op: wasm.I32Const}, wasm.I64: {Op: wasm.I64Const}, wasm.F32: {Op: wasm.F32Const}, wasm.F64: {Op: wasm.F64Const},
		wasm.V128: {Op: wasm.V128Const}, wasm.FuncRef: {Op: wasm.RefNull, A: uint64(wasm.FuncRef)},
	}
	for _, t := range operands {
		one := push[t]
		c.add(&one)
	}
	c.add(in)
	for range left {
		c.op(wasm.Drop)
	}
	m.Code = []wasm.Code{{Locals: []wasm.LocalRun{{N: 1, Type: wasm.I32}}, Body: c.end().b}}
	return m
}

// The compiler checks types, so it accepts such a function only if the height is what it is said to be.
func TestTheCompilerAgreesByHowMuchInstructionsChangeTheStack(t *testing.T) {
	ctx := t.Context()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer r.Close(ctx)
	accepted := func(in wasm.Instr) bool {
		for _, operands := range operandsOf {
			if m := balanced(&in, operands); m != nil {
				if compiled, err := r.CompileModule(ctx, m.Encode()); err == nil {
					compiled.Close(ctx)
					return true
				}
			}
		}
		return false
	}
	seen := 0
	for _, in := range straight() {
		if seen++; !accepted(in) {
			t.Errorf("instruction %#x does not change the height by %d", in.Op, change(&wasm.Module{}, &in))
		}
	}
	if seen < 400 {
		t.Errorf("only %d instructions", seen)
	}
}

// straight are all instructions but those for blocks, branches and calls.
func straight() (all []wasm.Instr) {
	for op := 0x1a; op <= 0xd2; op++ {
		all = appendKnown(all, wasm.Op(op))
	}
	for n := range 18 {
		all = appendKnown(all, 0xfc00|wasm.Op(n))
	}
	for n := range 256 {
		all = appendKnown(all, 0xfd00|wasm.Op(n))
	}
	return all
}

// appendKnown adds an instruction with zeroes behind its code, if there is one.
func appendKnown(all []wasm.Instr, op wasm.Op) []wasm.Instr {
	in := wasm.Instr{Op: op}
	switch op {
	case wasm.SelectTyped:
		in.A = uint64(wasm.I32)
	case wasm.RefNull:
		in.A = uint64(wasm.FuncRef)
	}
	m := balanced(&in, []byte{wasm.I32, wasm.I32, wasm.I32})
	body := m.Body(0)
	for got := (wasm.Instr{}); body.Next(&got); {
		if got.Op == op {
			return append(all, in)
		}
	}
	return all
}

// What vectors take was once not known, and such a function was refused for 1,201 operands where there are two.
func TestAFunctionOfVectorsAndBranchesIsAccepted(t *testing.T) {
	c, v := new(code), wasm.Instr{Op: wasm.V128Const}
	c.add(&v)
	for range 1200 {
		c.add(&v).op(0xfdae) // i32x4.add
	}
	c.op(wasm.Drop)
	for range 900 {
		c.with(wasm.Block, wasm.EmptyBlock).i32(0).with(wasm.BrIf, 0).end()
	}
	m := &wasm.Module{Types: []wasm.FuncType{{}}, Funcs: []uint32{0}, Code: []wasm.Code{{Body: c.end().b}}}
	l := DefaultLimits()
	l.Operands = 2
	if _, err := Rewrite(m.Encode(), l); err != nil {
		t.Error(err)
	}
}
