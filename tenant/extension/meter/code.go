package meter

import "github.com/ostrodb/ostro/tenant/extension/wasm"

// code is a body that is being written.
type code struct{ b []byte }

func (c *code) op(op wasm.Op) *code {
	in := wasm.Instr{Op: op}
	c.b = in.Append(c.b)
	return c
}

func (c *code) with(op wasm.Op, a uint64) *code {
	in := wasm.Instr{Op: op, A: a}
	c.b = in.Append(c.b)
	return c
}

func (c *code) i64(v int64) *code { return c.with(wasm.I64Const, uint64(v)) }
func (c *code) i32(v int32) *code { return c.with(wasm.I32Const, uint64(int64(v))) }

func (c *code) local(op wasm.Op, i uint32) *code  { return c.with(op, uint64(i)) }
func (c *code) global(op wasm.Op, i uint32) *code { return c.with(op, uint64(i)) }
func (c *code) call(fn uint32) *code              { return c.with(wasm.Call, uint64(fn)) }
func (c *code) when() *code                       { return c.with(wasm.If, wasm.EmptyBlock) }
func (c *code) end() *code                        { return c.op(wasm.End) }
