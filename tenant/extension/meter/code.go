package meter

import "github.com/ostrodb/ostro/tenant/extension/wasm"

// code is a body that is being written, and what it has that takes the compiler long.
type code struct {
	b      []byte
	calls  int
	weight int
}

// add writes an instruction. All that is written comes here.
func (c *code) add(in *wasm.Instr) *code {
	if in.Op == wasm.Call || in.Op == wasm.CallIndirect {
		c.calls++
	}
	c.weight += weight(in.Op)
	c.b = in.Append(c.b)
	return c
}

func (c *code) op(op wasm.Op) *code { return c.add(&wasm.Instr{Op: op}) }

func (c *code) with(op wasm.Op, a uint64) *code { return c.add(&wasm.Instr{Op: op, A: a}) }

func (c *code) i64(v int64) *code { return c.with(wasm.I64Const, uint64(v)) }
func (c *code) i32(v int32) *code { return c.with(wasm.I32Const, uint64(int64(v))) }

func (c *code) local(op wasm.Op, i uint32) *code  { return c.with(op, uint64(i)) }
func (c *code) global(op wasm.Op, i uint32) *code { return c.with(op, uint64(i)) }
func (c *code) call(fn uint32) *code              { return c.with(wasm.Call, uint64(fn)) }
func (c *code) when() *code                       { return c.with(wasm.If, wasm.EmptyBlock) }
func (c *code) end() *code                        { return c.op(wasm.End) }
