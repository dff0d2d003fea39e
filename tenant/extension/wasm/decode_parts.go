package wasm

func (d *decoder) funcType() FuncType {
	if c := d.r.byte(); c != 0x60 {
		d.r.fail("0x%02x is no type of functions", c)
	}
	params := vector(d, d.r.valType)
	return FuncType{params, vector(d, d.r.valType)}
}

func (d *decoder) typeIndex() uint32 {
	t := d.r.u32()
	if int(t) >= len(d.m.Types) {
		d.r.fail("there is no type %d", t)
	}
	return t
}

func (d *decoder) imported() Import {
	im := Import{Module: d.r.name(), Name: d.r.name(), Kind: d.r.byte()}
	switch im.Kind {
	case KindFunc:
		im.Func = d.typeIndex()
		d.m.importedFuncs++
	case KindTable:
		im.Table = d.table()
		d.m.importedTables++
	case KindMemory:
		im.Memory = d.memory()
		d.m.importedMemories++
	case KindGlobal:
		im.Global = d.globalType()
		d.m.importedGlobals++
	default:
		d.r.fail("import %s.%s is of unknown kind %d", im.Module, im.Name, im.Kind)
	}
	return im
}

func (d *decoder) limits(most uint32) Limits {
	var l Limits
	switch flag := d.r.byte(); flag {
	case 0:
		l.Min = d.r.u32()
	case 1:
		l = Limits{d.r.u32(), d.r.u32(), true}
	case 2, 3:
		d.r.fail("shared memory is not supported")
	default:
		d.r.fail("64-bit memory is not supported")
	}
	if l.Min > most || l.Bounded && l.Max < l.Min {
		d.r.fail("limits from %d to %d", l.Min, l.Max)
	}
	return l
}

func (d *decoder) table() Table {
	t := d.r.refType()
	return Table{t, d.limits(1<<32 - 1)}
}

func (d *decoder) memory() Limits { return d.limits(65536) }

func (d *decoder) globalType() GlobalType {
	t, mutable := d.r.valType(), d.r.byte()
	if mutable > 1 {
		d.r.fail("a global that is neither constant nor variable")
	}
	return GlobalType{t, mutable == 1}
}

func (d *decoder) global() Global {
	t := d.globalType()
	return Global{t, d.constant()}
}

func (d *decoder) export() Export {
	e := Export{d.r.name(), d.r.byte(), d.r.u32()}
	if e.Kind > KindGlobal {
		d.r.fail("export %q is of unknown kind %d", e.Name, e.Kind)
	}
	return e
}

// constant reads an expression: one instruction and its end. Indices of functions and globals are checked at the end.
func (d *decoder) constant() Const {
	r := d.r
	var in Instr
	switch op := Op(r.byte()); op {
	case I32Const:
		in = Instr{Op: op, A: uint64(r.signed(32))}
	case I64Const:
		in = Instr{Op: op, A: uint64(r.signed(64))}
	case F32Const:
		b := r.take(4)
		in = Instr{Op: op}
		for i, c := range b {
			in.A |= uint64(c) << (8 * i)
		}
	case F64Const:
		in = Instr{Op: op, A: r.u64()}
	case GlobalGet, RefFunc:
		in = Instr{Op: op, A: uint64(r.u32())}
	case RefNull:
		in = Instr{Op: op, A: uint64(r.refType())}
	case 0xfd:
		if n := r.u32(); n != uint32(V128Const&0xff) {
			r.fail("vector instruction 0x%02x in a constant", n)
		}
		in = Instr{Op: V128Const, A: r.u64(), B: r.u64()}
	default:
		r.fail("instruction 0x%02x in a constant", byte(op))
	}
	if end := r.byte(); end != byte(End) {
		r.fail("a constant of several instructions is not supported")
	}
	return Const{in}
}

// elem reads one of the eight forms of element segments.
func (d *decoder) elem() Elem {
	r := d.r
	form := r.u32()
	if form > 7 {
		r.fail("unknown form %d of an element segment", form)
		return Elem{}
	}
	e := Elem{Mode: Active, Type: FuncRef, funcs: form&4 == 0}
	switch form & 3 {
	case 1:
		e.Mode = Passive
	case 3:
		e.Mode = Declared
	case 2:
		e.Table = r.u32()
	}
	if e.Mode == Active {
		e.Offset = d.constant()
	}
	if form&3 != 0 {
		e.Type = d.elemType(e.funcs)
	}
	read := d.constant
	if e.funcs {
		read = func() Const { return Const{Instr{Op: RefFunc, A: uint64(r.u32())}} }
	}
	e.Init = d.inits(read)
	return e
}

// inits reads elements of a segment. It is those of all segments together that are bounded.
func (d *decoder) inits(read func() Const) []Const {
	n := d.r.count()
	d.elements += n
	d.within("elements in segments", d.elements, d.most.Elements)
	return some(d, n, read)
}

func (d *decoder) elemType(funcs bool) byte {
	if !funcs {
		return d.r.refType()
	}
	if kind := d.r.byte(); kind != 0 {
		d.r.fail("unknown kind %d of elements", kind)
	}
	return FuncRef
}

func (d *decoder) data() Data {
	r := d.r
	s := Data{}
	switch form := r.u32(); form {
	case 0:
		s.Offset = d.constant()
	case 1:
		s.Mode = Passive
	case 2:
		if i := r.u32(); i != 0 {
			r.fail("several memories are not supported")
		}
		s.Offset = d.constant()
	default:
		r.fail("unknown form %d of a data segment", form)
	}
	s.Bytes = r.take(r.u32())
	return s
}

func (d *decoder) code() Code {
	whole := d.r
	size := whole.u32()
	start := whole.at
	b := whole.take(size)
	if whole.err != nil {
		return Code{}
	}
	d.r = &reader{b: b, base: whole.base + start}
	c := Code{Locals: vector(d, d.localRun)}
	c.Offset, c.Body = d.r.base+d.r.at, b[d.r.at:]
	if d.r.err != nil {
		whole.err, whole.at = d.r.err, len(whole.b)
	}
	d.r = whole
	return c
}

func (d *decoder) localRun() LocalRun {
	return LocalRun{d.r.u32(), d.r.valType()}
}
