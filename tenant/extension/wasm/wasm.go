// Package wasm reads and writes the binary format of WebAssembly modules: the
// core specification's version 2, with bulk memory, reference types, multiple
// values and SIMD. It is pure, and it does not validate types: the compiler does.
//
// What it checks is what whoever rewrites modules leans on: every index is
// within its space, every vector fits into the bytes that are there, blocks
// nest. Encoding writes what was decoded, never bytes that were only passed
// on, so that the compiler reads exactly what was understood here.
package wasm

import "fmt"

// Value types.
const (
	I32     = byte(0x7f)
	I64     = byte(0x7e)
	F32     = byte(0x7d)
	F64     = byte(0x7c)
	V128    = byte(0x7b)
	FuncRef = byte(0x70)
	Extern  = byte(0x6f)
)

// Kinds of imports and exports.
const (
	KindFunc   = byte(0)
	KindTable  = byte(1)
	KindMemory = byte(2)
	KindGlobal = byte(3)
)

// FormatError is bytes that are no module that is understood here.
type FormatError struct {
	Offset int // in the module
	What   string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("at byte %d: %s", e.Offset, e.What)
}

// Module is a decoded module. Code is kept as bytes within the module that it was decoded from.
type Module struct {
	Types    []FuncType
	Imports  []Import
	Funcs    []uint32 // types of the functions that are not imported
	Tables   []Table
	Memories []Limits
	Globals  []Global
	Exports  []Export
	Start    *uint32
	Elems    []Elem
	Datas    []Data
	Counted  bool // has a data count section
	Code     []Code
	Customs  []Custom

	importedFuncs, importedTables, importedMemories, importedGlobals int
}

// FuncType is the type of a function.
type FuncType struct{ Params, Results []byte }

// Limits are those of a memory, in pages, or of a table, in elements.
type Limits struct {
	Min, Max uint32
	Bounded  bool // Max counts
}

// Table is a table's type.
type Table struct {
	Type byte
	Limits
}

// GlobalType is the type of a global.
type GlobalType struct {
	Type    byte
	Mutable bool
}

// Global is a global of the module's own.
type Global struct {
	GlobalType
	Init Const
}

// Import is something that the module needs.
type Import struct {
	Module, Name string
	Kind         byte
	Func         uint32 // index of its type
	Table        Table
	Memory       Limits
	Global       GlobalType
}

// Export is something that others can use.
type Export struct {
	Name  string
	Kind  byte
	Index uint32
}

// Const is an expression of one instruction that is evaluated at instantiation.
type Const struct{ Instr Instr }

// Elem fills a part of a table.
type Elem struct {
	Mode   byte // Active, Passive or Declared
	Table  uint32
	Offset Const
	Type   byte
	Init   []Const
	funcs  bool // was written as plain function indices
}

// Data fills a part of memory.
type Data struct {
	Mode   byte
	Memory uint32
	Offset Const
	Bytes  []byte
}

// Modes of Elem and Data.
const (
	Active   = byte(0)
	Passive  = byte(1)
	Declared = byte(2)
)

// Code is the body of a function.
type Code struct {
	Offset int // of Body in the module
	Locals []LocalRun
	Body   []byte // instructions, with the last end
}

// LocalRun is a number of locals of one type.
type LocalRun struct {
	N    uint32
	Type byte
}

// Custom is a section without meaning for execution.
type Custom struct {
	Name  string
	Bytes []byte
}

// ImportedFuncs is where indices of own functions begin.
func (m *Module) ImportedFuncs() int { return m.importedFuncs }

// ImportedGlobals is where indices of own globals begin.
func (m *Module) ImportedGlobals() int { return m.importedGlobals }

// NumFuncs counts all functions, imported ones first.
func (m *Module) NumFuncs() int { return m.importedFuncs + len(m.Funcs) }

// NumGlobals counts all globals, imported ones first.
func (m *Module) NumGlobals() int { return m.importedGlobals + len(m.Globals) }

// NumTables counts all tables, imported ones first.
func (m *Module) NumTables() int { return m.importedTables + len(m.Tables) }

// NumMemories counts all memories, imported ones first.
func (m *Module) NumMemories() int { return m.importedMemories + len(m.Memories) }

// TypeOf is the type of a function, imported or not.
func (m *Module) TypeOf(fn uint32) FuncType {
	if int(fn) >= m.importedFuncs {
		return m.Types[m.Funcs[int(fn)-m.importedFuncs]]
	}
	for _, im := range m.Imports {
		if im.Kind != KindFunc {
			continue
		}
		if fn == 0 {
			return m.Types[im.Func]
		}
		fn--
	}
	panic("wasm: no such function") // Decode has checked indices.
}

// NumLocals counts the locals of a function of the module's own, parameters first.
func (m *Module) NumLocals(own int) uint64 {
	n := uint64(len(m.Types[m.Funcs[own]].Params))
	for _, run := range m.Code[own].Locals {
		n += uint64(run.N)
	}
	return n
}

// AddImport adds a function behind those that are imported already and returns its index. Indices of own functions grow
// by one: whoever calls it rewrites what names them.
func (m *Module) AddImport(module, name string, typ uint32) uint32 {
	m.Imports = append(m.Imports, Import{Module: module, Name: name, Kind: KindFunc, Func: typ})
	m.importedFuncs++
	return uint32(m.importedFuncs - 1)
}

// AddType returns the index of a type, a new one if there is none like it.
func (m *Module) AddType(t FuncType) uint32 {
	for i, have := range m.Types {
		if string(have.Params) == string(t.Params) && string(have.Results) == string(t.Results) {
			return uint32(i)
		}
	}
	m.Types = append(m.Types, t)
	return uint32(len(m.Types) - 1)
}
