package wasm

import "encoding/binary"

// AppendUint appends a number as the format writes it.
func AppendUint(b []byte, v uint64) []byte { return binary.AppendUvarint(b, v) }

// AppendInt appends a signed number as the format writes it.
func AppendInt(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// Append appends an instruction.
func (in *Instr) Append(b []byte) []byte {
	s := shapes[byte(in.Op)]
	switch in.Op >> 8 {
	case 0:
		b = append(b, byte(in.Op))
	case 0xfc:
		b, s = append(b, 0xfc, byte(in.Op)), miscs[byte(in.Op)]
	default:
		b, s = AppendUint(append(b, 0xfd), uint64(byte(in.Op))), vecs[byte(in.Op)]
	}
	switch s {
	case blockShape:
		return appendBlockType(b, in.A)
	case labelShape, funcShape, localShape, globalShape, tableIndexShape, dataShape, elemShape:
		return AppendUint(b, in.A)
	case tableShape:
		b = AppendUint(b, uint64(len(in.Labels)-1))
		for _, l := range in.Labels {
			b = AppendUint(b, uint64(l))
		}
		return b
	case indirectShape, memargShape, tableInitShape, tableCopyShape:
		return AppendUint(AppendUint(b, in.A), in.B)
	case memoryShape:
		return append(b, 0)
	case memoryCopyShape:
		return append(b, 0, 0)
	case memoryInitShape:
		return append(AppendUint(b, in.A), 0)
	case i32Shape, i64Shape:
		return AppendInt(b, int64(in.A))
	case f32Shape:
		return binary.LittleEndian.AppendUint32(b, uint32(in.A))
	case f64Shape:
		return binary.LittleEndian.AppendUint64(b, in.A)
	case refShape:
		return append(b, byte(in.A))
	case selectShape:
		return append(b, 1, byte(in.A))
	case memargLaneShape:
		return append(AppendUint(AppendUint(b, in.A), in.B), in.Lane)
	case laneShape:
		return append(b, in.Lane)
	case bytes16Shape:
		return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, in.A), in.B)
	}
	return b
}

func appendBlockType(b []byte, t uint64) []byte {
	if t >= TypedBlock {
		return AppendInt(b, int64(t-TypedBlock))
	}
	return append(b, byte(t))
}

func (c *Const) append(b []byte) []byte { return append(c.Instr.Append(b), byte(End)) }

// Encode writes the module.
func (m *Module) Encode() []byte {
	b := append([]byte(nil), header...)
	b = section(b, secType, m.Types, appendFuncType)
	b = section(b, secImport, m.Imports, appendImport)
	b = section(b, secFunc, m.Funcs, func(b []byte, t uint32) []byte { return AppendUint(b, uint64(t)) })
	b = section(b, secTable, m.Tables, appendTable)
	b = section(b, secMemory, m.Memories, appendLimits)
	b = section(b, secGlobal, m.Globals, func(b []byte, g Global) []byte { return g.Init.append(appendGlobalType(b, g.GlobalType)) })
	b = section(b, secExport, m.Exports, appendExport)
	if m.Start != nil {
		b = whole(b, secStart, AppendUint(nil, uint64(*m.Start)))
	}
	b = section(b, secElem, m.Elems, appendElem)
	if m.Counted {
		b = whole(b, secDataCount, AppendUint(nil, uint64(len(m.Datas))))
	}
	b = section(b, secCode, m.Code, appendCode)
	b = section(b, secData, m.Datas, appendData)
	for _, c := range m.Customs {
		b = whole(b, secCustom, append(appendName(nil, c.Name), c.Bytes...))
	}
	return b
}

// section writes a vector, or nothing if it is empty.
func section[T any](b []byte, id byte, all []T, one func([]byte, T) []byte) []byte {
	if len(all) == 0 {
		return b
	}
	body := AppendUint(nil, uint64(len(all)))
	for _, e := range all {
		body = one(body, e)
	}
	return whole(b, id, body)
}

func whole(b []byte, id byte, body []byte) []byte {
	return append(AppendUint(append(b, id), uint64(len(body))), body...)
}

func appendName(b []byte, s string) []byte {
	return append(AppendUint(b, uint64(len(s))), s...)
}

func appendBytes(b, v []byte) []byte {
	return append(AppendUint(b, uint64(len(v))), v...)
}

func appendFuncType(b []byte, t FuncType) []byte {
	return appendBytes(appendBytes(append(b, 0x60), t.Params), t.Results)
}

func appendImport(b []byte, im Import) []byte {
	b = append(appendName(appendName(b, im.Module), im.Name), im.Kind)
	switch im.Kind {
	case KindFunc:
		return AppendUint(b, uint64(im.Func))
	case KindTable:
		return appendTable(b, im.Table)
	case KindMemory:
		return appendLimits(b, im.Memory)
	default:
		return appendGlobalType(b, im.Global)
	}
}

func appendTable(b []byte, t Table) []byte { return appendLimits(append(b, t.Type), t.Limits) }

func appendLimits(b []byte, l Limits) []byte {
	if !l.Bounded {
		return AppendUint(append(b, 0), uint64(l.Min))
	}
	return AppendUint(AppendUint(append(b, 1), uint64(l.Min)), uint64(l.Max))
}

func appendGlobalType(b []byte, t GlobalType) []byte {
	if t.Mutable {
		return append(b, t.Type, 1)
	}
	return append(b, t.Type, 0)
}

func appendExport(b []byte, e Export) []byte {
	return AppendUint(append(appendName(b, e.Name), e.Kind), uint64(e.Index))
}

func appendElem(b []byte, e Elem) []byte {
	form := uint64(0)
	if !e.funcs {
		form = 4
	}
	switch {
	case e.Mode == Passive:
		form |= 1
	case e.Mode == Declared:
		form |= 3
	case e.Table != 0 || e.Type != FuncRef:
		form |= 2
	}
	b = AppendUint(b, form)
	if form&3 == 2 {
		b = AppendUint(b, uint64(e.Table))
	}
	if e.Mode == Active {
		b = e.Offset.append(b)
	}
	if form&3 != 0 {
		if e.funcs {
			b = append(b, 0)
		} else {
			b = append(b, e.Type)
		}
	}
	b = AppendUint(b, uint64(len(e.Init)))
	for _, c := range e.Init {
		if e.funcs {
			b = AppendUint(b, c.Instr.A)
		} else {
			b = c.append(b)
		}
	}
	return b
}

func appendCode(b []byte, c Code) []byte {
	body := AppendUint(nil, uint64(len(c.Locals)))
	for _, run := range c.Locals {
		body = append(AppendUint(body, uint64(run.N)), run.Type)
	}
	return appendBytes(b, append(body, c.Body...))
}

func appendData(b []byte, s Data) []byte {
	if s.Mode == Passive {
		b = append(b, 1)
	} else {
		b = s.Offset.append(append(b, 0))
	}
	return appendBytes(b, s.Bytes)
}
