package extension

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ostrodb/ostro/tenant/extension/meter"
	"github.com/ostrodb/ostro/tenant/extension/wasm"
)

const (
	functionPrefix = meter.FunctionPrefix
	initializeName = meter.InitializeName
	areaName       = meter.AreaName
	firstName      = "ostro_first"
	memoryName     = "memory"
	nameMost       = 64
)

var letterNames = map[byte]string{wasm.I32: "i32", wasm.I64: "i64", wasm.F32: "f32", wasm.F64: "f64", wasm.V128: "v128", wasm.FuncRef: "funcref", wasm.Extern: "externref"}

// inspect checks that a module is a function's and rewrites it.
func inspect(code []byte, limits Limits, plain bool) (*Description, []byte, error) {
	m, err := limits.Module.Decode(code)
	if err != nil {
		return nil, nil, err
	}
	about := &Description{}
	if err := about.imports(m); err != nil {
		return nil, nil, err
	}
	if err := about.exports(m); err != nil {
		return nil, nil, err
	}
	rewrite := meter.Rewrite
	if plain {
		rewrite = meter.Plain
	}
	res, err := rewrite(code, limits.Module)
	if err != nil {
		return nil, nil, err
	}
	about.Metering = res.Report
	return about, res.Module, nil
}

func (d *Description) imports(m *wasm.Module) error {
	known := importTable()
	for _, im := range m.Imports {
		name := im.Module + "." + im.Name
		want, ok := known[name]
		if im.Kind != wasm.KindFunc || !ok {
			return fmt.Errorf("it imports %s, which is not there; functions of %s and %s are (docs/function-abi.md)", name, HostModule, wasiModule)
		}
		if got := typeText(m.Types[im.Func]); got != want {
			return fmt.Errorf("it imports %s as %s, but that is %s", name, got, want)
		}
		d.Imports = append(d.Imports, name)
	}
	return nil
}

func (d *Description) exports(m *wasm.Module) error {
	var memory bool
	for _, e := range m.Exports {
		name, isFunction := strings.CutPrefix(e.Name, functionPrefix)
		switch {
		case e.Name == memoryName && e.Kind == wasm.KindMemory:
			memory = true
			d.MemoryPages = int(m.Memories[0].Min)
		case e.Name == initializeName && e.Kind == wasm.KindFunc:
			if got := typeText(m.TypeOf(e.Index)); got != "()" {
				return fmt.Errorf("its _initialize is %s and must be ()", got)
			}
			d.Initializes = true
		case e.Name == areaName && e.Kind == wasm.KindFunc:
			if got := typeText(m.TypeOf(e.Index)); got != "() -> i32" {
				return fmt.Errorf("its ostro_area is %s and must be () -> i32", got)
			}
		case isFunction && e.Kind == wasm.KindFunc:
			if err := checkFunction(name, m.TypeOf(e.Index)); err != nil {
				return err
			}
			d.Functions = append(d.Functions, name)
		default:
			d.Exports = append(d.Exports, e.Name)
		}
	}
	slices.Sort(d.Functions)
	switch {
	case !memory:
		return fmt.Errorf("it exports no memory: export it as %q", memoryName)
	case len(d.Functions) == 0:
		return fmt.Errorf("it exports no function: one that is invoked as NAME is exported as %sNAME", functionPrefix)
	}
	return nil
}

func checkFunction(name string, t wasm.FuncType) error {
	if len(name) == 0 || len(name) > nameMost || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") != "" {
		return fmt.Errorf("its function %q has no good name: 1 to %d letters, digits, _, - and .", name, nameMost)
	}
	if got := typeText(t); got != "() -> i32" {
		return fmt.Errorf("its function %s is %s and must be () -> i32", name, got)
	}
	return nil
}

func typeText(t wasm.FuncType) string {
	names := func(all []byte) string {
		var text []string
		for _, c := range all {
			text = append(text, letterNames[c])
		}
		return strings.Join(text, ", ")
	}
	s := "(" + names(t.Params) + ")"
	if len(t.Results) > 0 {
		s += " -> " + names(t.Results)
	}
	return s
}

func signature(h hostCall) string {
	return typeText(wasm.FuncType{Params: types(h.params), Results: types(h.result)})
}
