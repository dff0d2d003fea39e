package wasm

import "bytes"

var header = []byte{0, 'a', 's', 'm', 1, 0, 0, 0}

// Numbers of sections.
const (
	secCustom = iota
	secType
	secImport
	secFunc
	secTable
	secMemory
	secGlobal
	secExport
	secStart
	secElem
	secCode
	secData
	secDataCount
)

// order is where sections stand in a module; the data count stands before the code.
var order = [...]int{secType: 1, secImport: 2, secFunc: 3, secTable: 4, secMemory: 5, secGlobal: 6, secExport: 7, secStart: 8, secElem: 9, secDataCount: 10, secCode: 11, secData: 12}

// Decode reads a module. It refers to its bytes, which must not change afterwards.
func Decode(b []byte) (*Module, error) { return DecodeWithin(b, Most{}) }

// DecodeWithin reads a module that has no more than so many of each. Of what has more it takes no memory.
func DecodeWithin(b []byte, most Most) (*Module, error) {
	if !bytes.HasPrefix(b, header[:4]) {
		return nil, &FormatError{0, "this is no WebAssembly module"}
	}
	if !bytes.HasPrefix(b, header) {
		return nil, &FormatError{4, "this is no core module of version 1"}
	}
	d := &decoder{m: &Module{}, most: most, r: &reader{b: b, at: len(header)}}
	for d.r.left() > 0 {
		d.section()
	}
	d.finish()
	if d.r.err != nil {
		return nil, d.r.err
	}
	return d.m, nil
}

type decoder struct {
	m        *Module
	r        *reader
	most     Most
	last     int // place in order of the section before
	datas    uint32
	elements int
}

// section reads one and comes back to the whole module behind it.
func (d *decoder) section() {
	whole := d.r
	id := int(whole.byte())
	size := whole.u32()
	start := whole.at
	body := whole.take(size)
	if whole.err != nil {
		return
	}
	if id != secCustom {
		if id >= len(order) {
			whole.fail("unknown section %d", id)
			return
		}
		if order[id] <= d.last {
			whole.fail("section %d is out of order", id)
			return
		}
		d.last = order[id]
	}
	d.r = &reader{b: body, base: start}
	d.content(id)
	if d.r.left() > 0 {
		d.r.fail("section %d is longer than what it holds", id)
	}
	whole.err = d.r.err
	d.r = whole
	if whole.err != nil {
		whole.at = len(whole.b)
	}
}

func (d *decoder) content(id int) {
	m, r := d.m, d.r
	switch id {
	case secCustom:
		d.within("custom sections", len(m.Customs)+1, d.most.Customs)
		name := r.name()
		m.Customs = append(m.Customs, Custom{name, r.take(uint32(r.left()))})
	case secType:
		m.Types = bounded(d, "types", d.most.Types, d.funcType)
	case secImport:
		m.Imports = bounded(d, "imports", d.most.Functions, d.imported)
	case secFunc:
		m.Funcs = bounded(d, "functions", d.most.Functions, d.typeIndex)
	case secTable:
		m.Tables = bounded(d, "tables", d.most.Tables, d.table)
	case secMemory:
		m.Memories = vector(d, d.memory)
	case secGlobal:
		m.Globals = bounded(d, "globals", d.most.Globals, d.global)
	case secExport:
		m.Exports = bounded(d, "exports", d.most.Exports, d.export)
	case secStart:
		f := r.u32()
		m.Start = &f
	case secElem:
		m.Elems = bounded(d, "element segments", d.most.ElementSegments, d.elem)
	case secDataCount:
		m.Counted = true
		d.datas = r.u32()
	case secCode:
		m.Code = bounded(d, "functions", d.most.Functions, d.code)
	case secData:
		m.Datas = bounded(d, "data segments", d.most.DataSegments, d.data)
	}
}

func vector[T any](d *decoder, read func() T) []T { return bounded(d, "", 0, read) }

// bounded reads a vector of no more than so many.
func bounded[T any](d *decoder, what string, most int, read func() T) []T {
	n := d.r.count()
	d.within(what, n, most)
	return some(d, n, read)
}

func some[T any](d *decoder, n int, read func() T) []T {
	if d.r.err != nil {
		return nil
	}
	all := make([]T, 0, min(n, 1024))
	for i := 0; i < n && d.r.err == nil; i++ {
		all = append(all, read())
	}
	return all
}

// finish checks what only the whole module can tell.
func (d *decoder) finish() {
	m, r := d.m, d.r
	if len(m.Code) != len(m.Funcs) {
		r.fail("%d functions with %d bodies", len(m.Funcs), len(m.Code))
	}
	if m.Counted && int(d.datas) != len(m.Datas) {
		r.fail("%d data segments were announced, %d came", d.datas, len(m.Datas))
	}
	if m.Start != nil && int(*m.Start) >= m.NumFuncs() {
		r.fail("there is no function %d to start", *m.Start)
	}
	if m.NumMemories() > 1 {
		r.fail("several memories are not supported")
	}
	for _, e := range m.Exports {
		if int(e.Index) >= m.space(e.Kind) {
			r.fail("export %q names nothing", e.Name)
		}
	}
	for i := range m.Elems {
		d.finishElem(&m.Elems[i])
	}
	for i := range m.Globals {
		d.finishConst(&m.Globals[i].Init)
	}
	for _, s := range m.Datas {
		if s.Mode == Active {
			d.finishConst(&s.Offset)
			if m.NumMemories() == 0 {
				r.fail("data without a memory")
			}
		}
	}
}

func (d *decoder) finishElem(e *Elem) {
	if e.Mode == Active {
		d.finishConst(&e.Offset)
		if int(e.Table) >= d.m.NumTables() {
			d.r.fail("elements for table %d, which is not there", e.Table)
		}
	}
	for i := range e.Init {
		d.finishConst(&e.Init[i])
	}
}

// finishConst checks indices in an expression. Only imported globals may be used.
func (d *decoder) finishConst(c *Const) {
	switch in := c.Instr; {
	case in.Op == RefFunc && in.A >= uint64(d.m.NumFuncs()):
		d.r.fail("there is no function %d", in.A)
	case in.Op == GlobalGet && in.A >= uint64(d.m.importedGlobals):
		d.r.fail("there is no imported global %d", in.A)
	}
}

// space is how many things of a kind there are.
func (m *Module) space(kind byte) int {
	switch kind {
	case KindFunc:
		return m.NumFuncs()
	case KindTable:
		return m.NumTables()
	case KindMemory:
		return m.NumMemories()
	default:
		return m.NumGlobals()
	}
}
