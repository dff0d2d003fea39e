package wasm

// Instr is one instruction. What A and B hold depends on it: a label, an index, a constant's bits; for accesses of
// memory A is the alignment and B the offset; for 16 bytes they are the low and the high half.
type Instr struct {
	Op     Op
	A, B   uint64
	Lane   byte
	Labels []uint32 // of br_table, the default last; valid until the next instruction is read
}

// The type of a block is A: EmptyBlock, a value type, or TypedBlock plus the index of a function's type.
const (
	EmptyBlock = uint64(0x40)
	TypedBlock = uint64(1) << 32
)

// Reader reads the instructions of a function's body.
type Reader struct {
	r      reader
	m      *Module
	locals uint64
	depth  int
	labels []uint32
}

// Body reads the body of a function of the module's own.
func (m *Module) Body(own int) *Reader {
	c := &m.Code[own]
	return &Reader{r: reader{b: c.Body, base: c.Offset}, m: m, locals: m.NumLocals(own), depth: 1}
}

// Err is why Next returned false, nil after the last instruction.
func (b *Reader) Err() error { return b.r.err }

// Offset is where the next instruction begins, within the body.
func (b *Reader) Offset() int { return b.r.at }

// Next reads an instruction.
func (b *Reader) Next(in *Instr) bool {
	r := &b.r
	if b.depth == 0 {
		if r.left() > 0 {
			r.fail("code behind the end of a function")
		}
		return false
	}
	op, s := b.op()
	*in = Instr{Op: op}
	b.immediates(in, s)
	switch op {
	case Block, Loop, If:
		b.depth++
	case End:
		b.depth--
	}
	return r.err == nil
}

// second is the number behind a prefix. It must be written as short as can be: the compiler takes its first byte for all
// of it, and would read another instruction.
func (b *Reader) second() uint32 {
	at := b.r.at
	n := b.r.u32()
	if n < 0x80 && b.r.at > at+1 || n < 0x4000 && b.r.at > at+2 {
		b.r.fail("an instruction that is not written as short as can be")
	}
	return n
}

func (b *Reader) op() (Op, shape) {
	r := &b.r
	c := r.byte()
	op, s := Op(c), shapes[c]
	switch c {
	case 0xfc:
		n := b.second()
		if n < uint32(len(miscs)) {
			s = miscs[n]
		}
		op = 0xfc00 | Op(n&0xff)
	case 0xfd:
		n := b.second()
		if n < uint32(len(vecs)) {
			s = vecs[n]
		}
		op = 0xfd00 | Op(n&0xff)
	}
	if s == unknown && r.err == nil {
		if what := refusal(c); what != "" {
			r.fail("%s are not supported", what)
		}
		r.fail("unknown instruction 0x%02x", uint16(op))
	}
	return op, s
}

// index reads an index and checks it. That is what rewriting leans on: what it adds lies behind.
func (b *Reader) index(n int, what string) uint64 {
	i := b.r.u32()
	if uint64(i) >= uint64(n) {
		b.r.fail("there is no %s %d", what, i)
		return 0
	}
	return uint64(i)
}

func (b *Reader) immediates(in *Instr, s shape) {
	r, m := &b.r, b.m
	switch s {
	case plain:
	case blockShape:
		in.A = b.blockType()
	case labelShape:
		in.A = b.index(b.depth, "label")
	case tableShape:
		b.brTable(in)
	case funcShape:
		in.A = b.index(m.NumFuncs(), "function")
	case indirectShape:
		in.A, in.B = b.index(len(m.Types), "type"), b.index(m.NumTables(), "table")
	case localShape:
		in.A = b.index(int(min(b.locals, 1<<31)), "local")
	case globalShape:
		in.A = b.index(m.NumGlobals(), "global")
	case tableIndexShape:
		in.A = b.index(m.NumTables(), "table")
	case memoryShape:
		b.memory()
	case memargShape:
		b.memarg(in)
	case i32Shape:
		in.A = uint64(r.signed(32))
	case i64Shape:
		in.A = uint64(r.signed(64))
	case f32Shape:
		if f := r.take(4); f != nil {
			in.A = uint64(f[0]) | uint64(f[1])<<8 | uint64(f[2])<<16 | uint64(f[3])<<24
		}
	case f64Shape:
		in.A = r.u64()
	case refShape:
		in.A = uint64(r.refType())
	case selectShape:
		if n := r.u32(); n != 1 {
			r.fail("select of %d values", n)
		}
		in.A = uint64(r.valType())
	default:
		b.rare(in, s)
	}
}

// rare reads what follows bulk and vector instructions.
func (b *Reader) rare(in *Instr, s shape) {
	r, m := &b.r, b.m
	switch s {
	case memoryInitShape:
		in.A = b.index(len(m.Datas), "data segment")
		b.memory()
	case dataShape:
		in.A = b.index(len(m.Datas), "data segment")
	case memoryCopyShape:
		b.memory()
		b.memory()
	case tableInitShape:
		in.A, in.B = b.index(len(m.Elems), "element segment"), b.index(m.NumTables(), "table")
	case elemShape:
		in.A = b.index(len(m.Elems), "element segment")
	case tableCopyShape:
		in.A, in.B = b.index(m.NumTables(), "table"), b.index(m.NumTables(), "table")
	case memargLaneShape:
		b.memarg(in)
		in.Lane = r.byte()
	case laneShape:
		in.Lane = r.byte()
	case bytes16Shape:
		in.A, in.B = r.u64(), r.u64()
	}
}

func (b *Reader) blockType() uint64 {
	r := &b.r
	switch t := r.signed(33); {
	case t >= 0 && t < int64(len(b.m.Types)):
		return TypedBlock + uint64(t)
	case t == -64:
		return EmptyBlock
	case t < 0 && t >= -64:
		c := byte(t & 0x7f)
		switch c {
		case I32, I64, F32, F64, V128, FuncRef, Extern:
			return uint64(c)
		}
		r.fail("unknown type 0x%02x of a block", c)
	default:
		r.fail("there is no type %d", t)
	}
	return EmptyBlock
}

func (b *Reader) brTable(in *Instr) {
	n := b.r.count()
	b.labels = b.labels[:0]
	for i := 0; i <= n && b.r.err == nil; i++ {
		b.labels = append(b.labels, uint32(b.index(b.depth, "label")))
	}
	in.Labels = b.labels
}

func (b *Reader) memory() {
	if i := b.r.byte(); i != 0 {
		b.r.fail("several memories are not supported")
	} else if b.m.NumMemories() == 0 {
		b.r.fail("there is no memory")
	}
}

func (b *Reader) memarg(in *Instr) {
	align := b.r.u32()
	if align > 4 {
		b.r.fail("an alignment of 2 to the power of %d", align)
	}
	in.A, in.B = uint64(align), uint64(b.r.u32())
}
