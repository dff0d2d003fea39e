package meter

import "github.com/ostrodb/ostro/tenant/extension/wasm"

// change is by how much an instruction changes the height of the operand stack. Where code is never reached it may say
// anything; the end of a block puts that right.
func change(m *wasm.Module, in *wasm.Instr) int {
	switch in.Op {
	case wasm.Call:
		f := m.TypeOf(uint32(in.A))
		return len(f.Results) - len(f.Params)
	case wasm.CallIndirect:
		f := &m.Types[in.A]
		return len(f.Results) - len(f.Params) - 1
	}
	switch in.Op >> 8 {
	case 0xfc:
		return int(bulkChanges[byte(in.Op)])
	case 0xfd:
		return int(vectorChanges[byte(in.Op)])
	}
	return int(plainChanges[byte(in.Op)])
}

// Changes of instructions without a prefix, behind 0xfc, and behind 0xfd.
var (
	plainChanges  = heightsOfPlain()
	bulkChanges   = heightsOfBulk()
	vectorChanges = heightsOfVectors()
)

type heights [256]int8

// span sets instructions from one to another.
func (h *heights) span(by int8, from, to int) {
	for i := from; i <= to; i++ {
		h[i] = by
	}
}

func (h *heights) each(by int8, ops ...wasm.Op) {
	for _, op := range ops {
		h[byte(op)] = by
	}
}

func heightsOfPlain() (h heights) {
	h.each(1, wasm.LocalGet, wasm.GlobalGet, wasm.MemorySize, wasm.I32Const, wasm.I64Const, wasm.F32Const, wasm.F64Const, wasm.RefNull, wasm.RefFunc)
	h.each(-1, wasm.LocalSet, wasm.GlobalSet, wasm.Drop, wasm.BrIf, wasm.If, wasm.BrTable)
	h.each(-2, wasm.Select, wasm.SelectTyped, wasm.TableSet)
	h.span(-2, 0x36, 0x3e) // stores
	h.span(-1, 0x46, 0x4f) // comparisons
	h.span(-1, 0x51, 0x66) //
	h.span(-1, 0x6a, 0x78) // arithmetic of two operands
	h.span(-1, 0x7c, 0x8a) //
	h.span(-1, 0x92, 0x98) //
	h.span(-1, 0xa0, 0xa6) //
	return h
}

func heightsOfBulk() (h heights) {
	h.each(-3, wasm.MemoryInit, wasm.MemoryCopy, wasm.MemoryFill, wasm.TableInit, wasm.TableCopy, wasm.TableFill)
	h.each(-1, wasm.TableGrow)
	h.each(1, wasm.TableSize)
	return h
}

func heightsOfVectors() (h heights) {
	h.each(1, wasm.V128Const)
	h.each(-2, 0x0b, 0x52)                               // store, bitselect
	h.each(-1, 0x17, 0x1a, 0x1c, 0x1e, 0x20, 0x22)       // replace_lane
	h.each(-1, 0x7b, 0x82, 0x9b, 0xae, 0xb1, 0xce, 0xd1) // avgr, q15mulr; add and sub of i32x4 and i64x2
	h.span(-1, 0x0d, 0x0e)                               // shuffle, swizzle
	h.span(-1, 0x23, 0x4c)                               // comparisons
	h.span(-1, 0x4e, 0x51)                               // and, andnot, or, xor
	h.span(-1, 0x54, 0x57)                               // load_lane
	h.span(-2, 0x58, 0x5b)                               // store_lane
	h.span(-1, 0x65, 0x66)                               // i8x16: narrow
	h.span(-1, 0x6b, 0x73)                               //        shifts, add, sub
	h.span(-1, 0x76, 0x79)                               //        min, max
	h.span(-1, 0x85, 0x86)                               // i16x8
	h.span(-1, 0x8b, 0x93)                               //
	h.span(-1, 0x95, 0x99)                               //
	h.span(-1, 0x9c, 0x9f)                               //
	h.span(-1, 0xab, 0xad)                               // i32x4
	h.span(-1, 0xb5, 0xba)                               //
	h.span(-1, 0xbc, 0xbf)                               //
	h.span(-1, 0xcb, 0xcd)                               // i64x2
	h.span(-1, 0xd5, 0xdf)                               //
	h.span(-1, 0xe4, 0xeb)                               // f32x4
	h.span(-1, 0xf0, 0xf7)                               // f64x2
	return h
}
