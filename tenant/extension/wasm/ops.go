package wasm

// Op is an instruction's code. Those behind a prefix have it in the high byte.
type Op uint16

// Instructions that rewriting has to know by name.
const (
	Unreachable  Op = 0x00
	Nop          Op = 0x01
	Block        Op = 0x02
	Loop         Op = 0x03
	If           Op = 0x04
	Else         Op = 0x05
	End          Op = 0x0b
	Br           Op = 0x0c
	BrIf         Op = 0x0d
	BrTable      Op = 0x0e
	Return       Op = 0x0f
	Call         Op = 0x10
	CallIndirect Op = 0x11
	Drop         Op = 0x1a
	Select       Op = 0x1b
	SelectTyped  Op = 0x1c
	LocalGet     Op = 0x20
	LocalSet     Op = 0x21
	LocalTee     Op = 0x22
	GlobalGet    Op = 0x23
	GlobalSet    Op = 0x24
	TableGet     Op = 0x25
	TableSet     Op = 0x26
	I32Load      Op = 0x28
	I64Load      Op = 0x29
	I32Load8U    Op = 0x2d
	I32Store     Op = 0x36
	I64Store     Op = 0x37
	I32Store8    Op = 0x3a
	MemorySize   Op = 0x3f
	MemoryGrow   Op = 0x40
	I32Const     Op = 0x41
	I64Const     Op = 0x42
	F32Const     Op = 0x43
	F64Const     Op = 0x44
	I32Eqz       Op = 0x45
	I32Eq        Op = 0x46
	I32LtU       Op = 0x49
	I32LtS       Op = 0x48
	I32GtU       Op = 0x4b
	I32LeU       Op = 0x4d
	I64LtS       Op = 0x53
	I64GtU       Op = 0x56
	I32Add       Op = 0x6a
	I32Sub       Op = 0x6b
	I32Mul       Op = 0x6c
	I32And       Op = 0x71
	I32Or        Op = 0x72
	I32ShrU      Op = 0x76
	I64Add       Op = 0x7c
	I64Sub       Op = 0x7d
	I64Mul       Op = 0x7e
	I64ShrU      Op = 0x88
	I64Shl       Op = 0x86
	I64ExtendU   Op = 0xad
	RefNull      Op = 0xd0
	RefIsNull    Op = 0xd1
	RefFunc      Op = 0xd2

	MemoryInit Op = 0xfc08
	DataDrop   Op = 0xfc09
	MemoryCopy Op = 0xfc0a
	MemoryFill Op = 0xfc0b
	TableInit  Op = 0xfc0c
	ElemDrop   Op = 0xfc0d
	TableCopy  Op = 0xfc0e
	TableGrow  Op = 0xfc0f
	TableSize  Op = 0xfc10
	TableFill  Op = 0xfc11

	V128Const Op = 0xfd0c
)

// shape says what follows an instruction's code.
type shape byte

const (
	unknown shape = iota
	plain
	blockShape
	labelShape
	tableShape // br_table
	funcShape
	indirectShape
	localShape
	globalShape
	tableIndexShape
	memoryShape // memory.size, memory.grow, memory.fill
	memargShape
	i32Shape
	i64Shape
	f32Shape
	f64Shape
	refShape
	selectShape
	memoryInitShape
	dataShape
	memoryCopyShape
	tableInitShape
	elemShape
	tableCopyShape
	memargLaneShape
	laneShape
	bytes16Shape
)

var (
	shapes [256]shape // without prefix
	miscs  [18]shape  // behind 0xfc
	vecs   [256]shape // behind 0xfd
)

func set(table []shape, s shape, from, to int) {
	for i := from; i <= to; i++ {
		table[i] = s
	}
}

func init() {
	s := shapes[:]
	set(s, plain, 0x00, 0x01)
	set(s, blockShape, 0x02, 0x04)
	s[Else], s[End], s[Return] = plain, plain, plain
	set(s, labelShape, 0x0c, 0x0d)
	s[BrTable], s[Call], s[CallIndirect] = tableShape, funcShape, indirectShape
	set(s, plain, 0x1a, 0x1b)
	s[SelectTyped] = selectShape
	set(s, localShape, 0x20, 0x22)
	set(s, globalShape, 0x23, 0x24)
	set(s, tableIndexShape, 0x25, 0x26)
	set(s, memargShape, 0x28, 0x3e)
	set(s, memoryShape, 0x3f, 0x40)
	s[I32Const], s[I64Const], s[F32Const], s[F64Const] = i32Shape, i64Shape, f32Shape, f64Shape
	set(s, plain, 0x45, 0xc4) // comparisons, arithmetic, conversions, sign extension
	s[RefNull], s[RefIsNull], s[RefFunc] = refShape, plain, funcShape

	m := miscs[:]
	set(m, plain, 0, 7)
	m[8], m[9], m[10], m[11] = memoryInitShape, dataShape, memoryCopyShape, memoryShape
	m[12], m[13], m[14] = tableInitShape, elemShape, tableCopyShape
	set(m, tableIndexShape, 15, 17)

	v := vecs[:]
	set(v, plain, 0x00, 0xff)
	set(v, memargShape, 0x00, 0x0b)
	set(v, bytes16Shape, 0x0c, 0x0d)
	set(v, laneShape, 0x15, 0x22)
	set(v, memargLaneShape, 0x54, 0x5b)
	set(v, memargShape, 0x5c, 0x5d)
	for _, hole := range []int{0x9a, 0xa2, 0xa5, 0xa6, 0xaf, 0xb0, 0xb2, 0xb3, 0xb4, 0xbb, 0xc2, 0xc5, 0xc6, 0xcf, 0xd0, 0xd2, 0xd3, 0xd4, 0xe2, 0xee} {
		v[hole] = unknown
	}
}

// refusals names what newer proposals have and is not for functions.
func refusal(op byte) string {
	switch {
	case op == 0x12 || op == 0x13 || op == 0x15:
		return "tail calls"
	case op >= 0x06 && op <= 0x0a || op == 0x18 || op == 0x19 || op == 0x1f:
		return "exceptions"
	case op == 0xfe:
		return "atomic instructions (threads)"
	case op == 0xfb:
		return "garbage collected types"
	case op == 0x14 || op >= 0xd3 && op <= 0xd6:
		return "typed function references"
	}
	return ""
}
