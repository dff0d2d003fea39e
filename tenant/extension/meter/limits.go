package meter

import (
	"fmt"
	"strings"

	"github.com/ostrodb/ostro/tenant/extension/wasm"
)

// Limits bound what a module may be. They keep compilation short, and instances small.
type Limits struct {
	ModuleBytes   int
	Functions     int
	FunctionBytes int // code of one
	Locals        int // of one, parameters among them
	Blocks        int // of one: compilation takes time by their square
	BlockSquares  int // of all functions
	LocalBlocks   int // locals times blocks of one: memory for compilation
	LoopDepth     int // of one: loops in loops
	Operands      int // of one, on the stack at a time
	Effort        int // of one: what the compiler does where branches meet, about; see merges
	Efforts       int // of all functions
	CallSteps     int // of one: what the compiler does behind calls and for what looks small, about; see steps.go
	CallStepsSum  int // of all functions
	Results       int // of one
	Types         int
	Globals       int
	Exports       int
	MemoryPages   int
	Tables        int
	TableElements int // in all tables together
	StackBytes    int

	ElementSegments int
	Elements        int // in all segments together
	DataSegments    int // Go makes one of every few bytes that are not zero
	Customs         int // sections
}

// DefaultLimits are those of functions that nobody has set others for.
func DefaultLimits() Limits {
	return Limits{
		ModuleBytes:   8 << 20,
		Functions:     30_000,
		FunctionBytes: 256 << 10,
		Locals:        2048,
		Blocks:        3000,
		BlockSquares:  64_000_000,
		LocalBlocks:   4_000_000,
		LoopDepth:     100,
		Operands:      10_000,
		Effort:        40_000_000,
		Efforts:       120_000_000,
		CallSteps:     1_000_000,
		CallStepsSum:  2_000_000,
		Results:       16,
		Types:         4096,
		Globals:       1024,
		Exports:       4096,
		MemoryPages:   256,
		Tables:        16,
		TableElements: 65_536,
		StackBytes:    1 << 20,

		ElementSegments: 4096,
		Elements:        65_536,
		DataSegments:    131_072,
		Customs:         1024,
	}
}

// LimitError is a module that is too large in some way.
type LimitError = wasm.LimitError

// RefusedError is a module that uses what functions cannot have.
type RefusedError struct{ Why string }

func (e *RefusedError) Error() string { return e.Why }

func refuse(format string, args ...any) error { return &RefusedError{fmt.Sprintf(format, args...)} }

func within(what string, has, most int) error {
	if has > most {
		return &LimitError{What: what, Has: has, Most: most}
	}
	return nil
}

// Decode reads a module, of whose parts none are more than may be.
func (l Limits) Decode(b []byte) (*wasm.Module, error) {
	if err := within("bytes", len(b), l.ModuleBytes); err != nil {
		return nil, err
	}
	return wasm.DecodeWithin(b, wasm.Most{
		Types: l.Types, Functions: l.Functions, Tables: l.Tables, Globals: l.Globals, Exports: l.Exports,
		ElementSegments: l.ElementSegments, Elements: l.Elements, DataSegments: l.DataSegments, Customs: l.Customs,
	})
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (l Limits) check(m *wasm.Module) error {
	err := firstError(
		within("functions", m.NumFuncs(), l.Functions), // Imported ones are among them here.
		l.checkImports(m), l.checkExports(m), l.checkTypes(m), l.checkMemory(m), l.checkTables(m),
	)
	if err != nil {
		return err
	}
	for i := range m.Code {
		if err := l.checkFunction(m, i); err != nil {
			return fmt.Errorf("function %d: %w", i+m.ImportedFuncs(), err)
		}
	}
	return nil
}

func (l Limits) checkImports(m *wasm.Module) error {
	for _, im := range m.Imports {
		if im.Kind != wasm.KindFunc {
			return refuse("the module imports %s.%s, which is no function: memories, tables and globals are its own", im.Module, im.Name)
		}
		if strings.HasPrefix(im.Name, ":") {
			return refuse("the module imports %s.%s: names with a colon are the store's", im.Module, im.Name)
		}
	}
	return nil
}

func (l Limits) checkExports(m *wasm.Module) error {
	for _, e := range m.Exports {
		if strings.HasPrefix(e.Name, Prefix) {
			return refuse("the module exports %q: names that begin with %s are the store's", e.Name, Prefix)
		}
	}
	return nil
}

func (l Limits) checkTypes(m *wasm.Module) error {
	for _, t := range m.Types {
		if err := firstError(within("parameters of a function", len(t.Params), 256), within("results of a function", len(t.Results), l.Results)); err != nil {
			return err
		}
	}
	return nil
}

func (l Limits) checkMemory(m *wasm.Module) error {
	for _, mem := range m.Memories {
		if int(mem.Min) > l.MemoryPages {
			return &LimitError{What: "pages of memory (64 KiB each)", Has: int(mem.Min), Most: l.MemoryPages}
		}
	}
	return nil
}

func (l Limits) checkTables(m *wasm.Module) error {
	sum := 0
	for _, t := range m.Tables {
		sum += int(t.Min)
	}
	return within("elements of tables", sum, l.TableElements)
}

func (l Limits) checkFunction(m *wasm.Module, own int) error {
	return firstError(
		within("bytes of code in one function", len(m.Code[own].Body), l.FunctionBytes),
		within("locals in one function", int(min(m.NumLocals(own), 1<<40)), l.Locals),
	)
}

// clamp writes the limits of what can grow into the module.
func (l Limits) clamp(m *wasm.Module) {
	for i := range m.Memories {
		mem := &m.Memories[i]
		if !mem.Bounded || int(mem.Max) > l.MemoryPages {
			mem.Max, mem.Bounded = uint32(l.MemoryPages), true
		}
	}
	left := l.TableElements
	for _, t := range m.Tables {
		left -= int(t.Min)
	}
	for i := range m.Tables {
		t := &m.Tables[i]
		if most := uint64(t.Min) + uint64(left/len(m.Tables)); !t.Bounded || uint64(t.Max) > most {
			t.Max, t.Bounded = uint32(most), true
		}
	}
}
