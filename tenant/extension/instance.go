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

// instance is a module with memory of its own. It serves one call at a time, and only its pool's. What every call
// needs comes first, so that it is on few cache lines: where many tenants take turns, none of them are in the cache. For
// the same reason a call's state is not the instance's, but of who calls.
type instance struct {
	counts
	fn    api.Function // the entry
	name  string       // of the function that was called last,
	which uint64       // and its number
	area  uint32       // where it is in memory; 0: there is none
	pool  *Pool
	task  *Task // of the call that runs; whoever has the instance sets it
	mem   memory

	mod    api.Module
	mapped bool // the memory is the image's
	states []api.MutableGlobal
	stack  *[]byte // of the entry
	engine []lines // what the runtime has of it; nil: nobody has looked yet
	chance *rand.ChaCha8
	index  map[writeKey]int // of the call's writes

	stackKnown int   // its bytes, when it was last looked at
	stackPaid  int64 // of these, what the tenant's allowance knows of
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

// newInstance makes an instance and initializes it, or gives it the memory of one that was. Its own code lets others run
// as a call's does.
func (p *Pool) newInstance(turns Turns) (in *instance, err error) {
	in = &instance{pool: p, counts: counts{first: true}, task: new(Task)}
	defer func() {
		if r := recover(); r != nil {
			if err = in.mem.err; err == nil { // Without its first pages the runtime cannot go on, and does not say so.
				err = fmt.Errorf("cannot make an instance: %v", r)
			}
		}
		if err != nil {
			in.close()
			in = nil
		}
	}()
	in.mem.allowance = p.opts.Memory
	if err := in.mem.takeTables(p.module.about.Metering.TableElements); err != nil {
		return in, err
	}
	if err := in.instantiate(turns); err != nil {
		return in, errors.Join(in.mem.err, err)
	}
	if in.mem.err != nil {
		return in, in.mem.err
	}
	return in, p.initialize(in, turns)
}

func (in *instance) instantiate(turns Turns) error {
	p := in.pool
	in.task.begin(in, p.birth("(start)", turns), &p.limits)
	defer in.task.end()
	in.task.budget += in.task.granted
	in.task.granted, in.task.held = 0, 0
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	ctx := &startContext{Task: in.task, alloc: experimental.WithMemoryAllocator(context.Background(), &in.mem)}
	mod, err := p.module.runtime.engine.InstantiateModule(ctx, p.module.compiled, config)
	if err != nil {
		return in.explain(err, "(start)")
	}
	in.mod = mod
	in.bind()
	return nil
}

// choose makes a function the one that run calls, false if there is none of the name.
func (in *instance) choose(name string) bool {
	which, ok := in.pool.module.entries[name]
	if ok {
		in.name, in.which = name, which
	}
	return ok
}

// run calls a function by its number, within the budget of the task.
func (in *instance) run(which uint64) error {
	in.arm(which)
	if err := in.enter(); err != nil {
		return in.why(err)
	}
	return nil
}

// arm sets the arguments of the entry.
func (in *instance) arm(which uint64) {
	in.mem.short = nil
	t := in.task
	t.stack[0], t.stack[1], t.stack[2] = which, uint64(t.granted), uint64(in.pool.stackBytes)
}

// enter runs the guest.
func (in *instance) enter() error { return in.fn.CallWithStack(in.task, in.task.stack[:]) }

// why says why the guest has ended.
func (in *instance) why(err error) error {
	if in.task.cause == &abandoned {
		return ErrAbandoned
	}
	return in.explain(err, in.task.inv.Function)
}

// variables are the module's own.
func (in *instance) variables() []api.MutableGlobal {
	for i := len(in.states); i < in.pool.module.about.Metering.States; i++ {
		in.states = append(in.states, in.mod.ExportedGlobal(meter.StateExport+strconv.Itoa(i)).(api.MutableGlobal))
	}
	return in.states
}

// explain says in the words of a caller why a guest ended.
func (in *instance) explain(err error, name string) error {
	text, trace, _ := strings.Cut(err.Error(), "\nwasm stack trace:\n")
	e := in.task.cause
	switch {
	case e != nil:
		e = &CallError{Kind: e.Kind, Code: e.Code, Message: e.Message, Err: e.Err}
	case in.stackEnded(), strings.Contains(text, "stack overflow"):
		e = &CallError{Kind: OutOfStack, Message: stackUsedUp}
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

// stackEnded tells whether the module's count of its stack has gone below zero.
func (in *instance) stackEnded() bool {
	return in.mod != nil && int32(uint32(in.mod.ExportedGlobal(meter.StackExport).Get())) < 0
}

// folded is a trace with functions that call themselves told once, and without the entry.
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
	in.payBack()
	in.mem.Free()
}
