package extension

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tetratelabs/wazero"

	"github.com/ostrodb/ostro/tenant/extension/meter"
)

// Module is a compiled module. It can have any number of pools.
type Module struct {
	runtime  *Runtime
	compiled wazero.CompiledModule
	shared   *sharedModule
	about    *Description
	entries  map[string]uint64 // numbers of functions, by name

	initialize  uint64 // its number
	area        uint64 // the number of what tells where the area is
	hasArea     bool
	hasFirst    bool // the area has room for the value of the first key
	habits      habits
	interrupted atomic.Bool // a call was ended in its middle: an image is worth its cost
	imaging     sync.Mutex  // held by who makes an image
	image       atomic.Pointer[image]
}

// RefusedError says why a module cannot be installed.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string { return "the module is refused: " + e.Err.Error() }

func (e *RefusedError) Unwrap() error { return e.Err }

// load checks a module, rewrites it so that it is metered, and compiles it, or takes what a cache has.
func (r *Runtime) load(ctx context.Context, key moduleKey, code []byte, limits Limits) (*Module, error) {
	about, rewritten, err := r.rewrite(key, code, limits)
	if err != nil {
		return nil, &RefusedError{err}
	}
	compiled, err := r.compile(ctx, rewritten)
	if err != nil && strings.HasPrefix(err.Error(), cacheTrouble) && r.emptyCache() {
		compiled, err = r.compile(ctx, rewritten)
	}
	if err != nil {
		return nil, &RefusedError{err}
	}
	r.noteCompiled(rewritten)
	m := &Module{runtime: r, compiled: compiled, about: about, entries: map[string]uint64{}}
	for i, export := range about.Metering.Entries {
		name, isFunction := strings.CutPrefix(export, functionPrefix)
		switch {
		case isFunction:
			m.entries[name] = uint64(i)
		case export == areaName:
			m.area, m.hasArea = uint64(i), true
		default:
			m.initialize = uint64(i)
		}
	}
	m.hasFirst = m.hasArea && slices.Contains(about.Exports, firstName)
	return m, nil
}

// compile keeps a panic of the compiler, should a module ever find one, from taking more with it than that module.
func (r *Runtime) compile(ctx context.Context, code []byte) (m wazero.CompiledModule, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the compiler failed: %v", p)
		}
	}()
	return r.engine.CompileModule(ctx, code)
}

// About describes the module.
func (m *Module) About() *Description { return m.about }

// Close is called once for every Compile that gave the module, when the pools of who did so are closed. The last one
// forgets it.
func (m *Module) Close(ctx context.Context) error {
	if !m.runtime.release(m.shared) {
		return nil
	}
	m.imaging.Lock()
	defer m.imaging.Unlock()
	m.image.Swap(nil).close()
	return m.compiled.Close(ctx)
}

// lacks tells of a function that the module does not have.
func (m *Module) lacks(name string) error {
	return fmt.Errorf("the module has no function %q; it has %s", name, strings.Join(m.about.Functions, ", "))
}

// Description is what is known about a module without running it.
type Description struct {
	Functions   []string     `json:"functions"` // that can be invoked
	Imports     []string     `json:"imports"`
	Exports     []string     `json:"exports"` // others
	Initializes bool         `json:"initializes"`
	MemoryPages int          `json:"memory_pages"`
	Metering    meter.Report `json:"metering"`
}

// Describe checks a module without compiling it.
func Describe(code []byte, limits Limits) (*Description, error) {
	about, _, err := inspect(code, limits, false)
	if err != nil {
		return nil, &RefusedError{err}
	}
	return about, nil
}

func importTable() map[string]string {
	all := map[string]string{}
	for _, h := range hostCalls {
		all[HostModule+"."+h.name] = signature(h)
	}
	for _, h := range wasiCalls {
		all[wasiModule+"."+h.name] = signature(h)
	}
	return all
}

// HostCalls lists what modules can import, with its type.
func HostCalls() []string {
	var all []string
	for name, sig := range importTable() {
		all = append(all, name+sig)
	}
	slices.Sort(all)
	return all
}
