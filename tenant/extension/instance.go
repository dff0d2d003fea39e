package extension

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/ostrodb/ostro/tenant/extension/meter"
)

// instance is a module with memory of its own. It serves one call at a time, and only its pool's.
type instance struct {
	pool   *Pool
	mod    api.Module
	mem    memory
	fuel   api.MutableGlobal
	stack  api.MutableGlobal
	states []api.MutableGlobal
	fns    map[string]api.Function
	chance *rand.ChaCha8
	index  map[writeKey]int // of the call's writes
	task   Task
	ret    [1]uint64
}

// startContext is the context of an instantiation: a task, and the allocator that wazero looks for.
type startContext struct {
	*Task
	alloc context.Context
}

// Value is what wazero asks for.
func (c *startContext) Value(key any) any { return c.alloc.Value(key) }

// taskOf is the call that a host function was called by.
func taskOf(ctx context.Context) *Task {
	if t, ok := ctx.(*Task); ok {
		return t
	}
	return ctx.(*startContext).Task
}

// newInstance makes an instance and initializes it, or maps the image of one that was.
func (p *Pool) newInstance() (in *instance, err error) {
	in = &instance{pool: p, fns: map[string]api.Function{}, chance: p.chances()}
	defer func() {
		if r := recover(); r != nil {
			err = errors.Join(fmt.Errorf("cannot make an instance: %v", r), in.mem.err)
		}
		if err != nil {
			in.close()
			in = nil
		}
	}()
	in.mem.allowance = p.opts.Memory
	if err := in.instantiate(); err != nil {
		return in, errors.Join(in.mem.err, err)
	}
	if in.mem.err != nil {
		return in, in.mem.err
	}
	return in, p.initialize(in)
}

func (in *instance) instantiate() error {
	p := in.pool
	// A start function runs as a call does that has nothing to do with data.
	in.task.begin(in, &Invocation{Function: "(start)", Store: nothing{}, ReadOnly: true}, &p.limits)
	defer in.task.end()
	in.task.budget += in.task.granted
	in.task.granted = 0
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	ctx := &startContext{Task: &in.task, alloc: experimental.WithMemoryAllocator(context.Background(), &in.mem)}
	mod, err := p.module.runtime.engine.InstantiateModule(ctx, p.module.compiled, config)
	if err != nil {
		return in.explain(err, "(start)")
	}
	in.mod = mod
	in.fuel = mod.ExportedGlobal(meter.FuelExport).(api.MutableGlobal)
	in.stack = mod.ExportedGlobal(meter.StackExport).(api.MutableGlobal)
	for i := range p.module.about.Metering.States {
		in.states = append(in.states, mod.ExportedGlobal(meter.StateExport+strconv.Itoa(i)).(api.MutableGlobal))
	}
	return nil
}

// run calls an exported function within the budget of the task.
func (in *instance) run(export string) error {
	fn := in.fns[export]
	if fn == nil {
		fn = in.mod.ExportedFunction(export)
		in.fns[export] = fn
	}
	in.mem.short = nil
	in.fuel.Set(uint64(in.task.granted))
	in.stack.Set(uint64(in.pool.stackBytes))
	if err := fn.CallWithStack(&in.task, in.ret[:]); err != nil {
		return in.explain(err, export)
	}
	return nil
}

// explain says in the words of a caller why a guest ended.
func (in *instance) explain(err error, export string) error {
	name := strings.TrimPrefix(export, functionPrefix)
	text, trace, _ := strings.Cut(err.Error(), "\nwasm stack trace:\n")
	e := in.task.cause
	switch {
	case e != nil:
		e = &CallError{Kind: e.Kind, Code: e.Code, Message: e.Message, Err: e.Err}
	case in.stack != nil && int32(uint32(in.stack.Get())) < 0, strings.Contains(text, "stack overflow"):
		e = &CallError{Kind: OutOfStack, Message: "called itself too deeply and used up its stack"}
	case in.mem.short != nil:
		e = &CallError{Kind: OverLimit, Message: "got no more memory and gave up: " + in.mem.short.Error(), Err: in.mem.short}
	case strings.HasPrefix(text, "wasm error: "):
		e = &CallError{Kind: Trapped, Message: "trapped: " + strings.TrimPrefix(text, "wasm error: ")}
	default:
		e = &CallError{Kind: Broken, Message: "could not run: " + text, Err: err}
	}
	e.Function, e.Trace = name, folded(trace)
	return e
}

// folded is a trace with functions that call themselves told once.
func folded(trace string) string {
	var out []string
	times := 0
	for line := range strings.Lines(trace) {
		line = strings.TrimSpace(line)
		if n := len(out); n > 0 && line == out[n-1] {
			times++
			continue
		}
		if times > 0 {
			out = append(out, fmt.Sprintf("(%d times more)", times))
			times = 0
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

func (in *instance) close() {
	if in.mod != nil {
		_ = in.mod.Close(context.Background())
		in.mod = nil
	}
	in.mem.Free()
}
