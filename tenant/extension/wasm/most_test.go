package wasm

import (
	"errors"
	"runtime"
	"slices"
	"testing"
)

func TestNoMoreThanMayBeIsDecoded(t *testing.T) {
	funcs := Elem{Mode: Passive, Type: FuncRef, Init: slices.Repeat([]Const{{Instr{Op: RefFunc}}}, 2)}
	global := Global{GlobalType{Type: I32}, Const{Instr{Op: I32Const}}}
	for what, c := range map[string]struct {
		most Most
		fill func(m *Module, n int)
	}{
		"types":                {Most{Types: 4}, func(m *Module, n int) { m.Types = make([]FuncType, n) }},
		"imports":              {Most{Functions: 4}, func(m *Module, n int) { m.Imports = slices.Repeat([]Import{{Module: "m", Name: "f"}}, n) }},
		"functions":            {Most{Functions: 4}, func(m *Module, n int) { m.Funcs, m.Code = make([]uint32, n), slices.Repeat(m.Code, n) }},
		"tables":               {Most{Tables: 4}, func(m *Module, n int) { m.Tables = slices.Repeat([]Table{{Type: FuncRef}}, n) }},
		"globals":              {Most{Globals: 4}, func(m *Module, n int) { m.Globals = slices.Repeat([]Global{global}, n) }},
		"exports":              {Most{Exports: 4}, func(m *Module, n int) { m.Exports = make([]Export, n) }},
		"element segments":     {Most{ElementSegments: 4}, func(m *Module, n int) { m.Elems = slices.Repeat([]Elem{funcs}, n) }},
		"elements in segments": {Most{Elements: 8}, func(m *Module, n int) { m.Elems = slices.Repeat([]Elem{funcs}, n) }},
		"data segments":        {Most{DataSegments: 4}, func(m *Module, n int) { m.Datas = slices.Repeat([]Data{{Mode: Passive}}, n) }},
		"custom sections":      {Most{Customs: 4}, func(m *Module, n int) { m.Customs = make([]Custom, n) }},
	} {
		for _, n := range []int{4, 5} {
			m := &Module{Types: []FuncType{{}}, Funcs: []uint32{0}, Code: []Code{{Body: []byte{byte(End)}}}}
			c.fill(m, n)
			_, err := DecodeWithin(m.Encode(), c.most)
			var limit *LimitError
			if refused := errors.As(err, &limit); err != nil && !refused || refused != (n > 4) || refused && limit.What != what {
				t.Errorf("%d %s: %v", n, what, err)
			}
			if _, err := Decode(m.Encode()); err != nil {
				t.Errorf("%d %s, as many as fit: %v", n, what, err)
			}
		}
	}
}

func TestWhatIsTooMuchTakesNoMemory(t *testing.T) {
	m := &Module{Types: []FuncType{{}}, Funcs: []uint32{0}, Code: []Code{{Body: []byte{byte(End)}}}}
	m.Elems = []Elem{{Mode: Passive, Type: FuncRef, Init: slices.Repeat([]Const{{Instr{Op: RefFunc}}}, 1_000_000)}}
	b := m.Encode()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := DecodeWithin(b, Most{Elements: 1_000})
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; err == nil || took > 1<<20 {
		t.Errorf("%d bytes for a million elements, of which a thousand may be: %v", took, err)
	}
}
