// Package meter rewrites WebAssembly modules so that what they do is counted:
// fuel for instructions, a bound for the stack, sizes for bulk operations. A
// rewritten module does what it did before, until its slice of fuel is used up.
// Then it calls the host, which lets others run, gives another slice, or ends it.
//
// What must hold: on every path through the code, and so in every loop and
// every recursion, at least as much is charged as instructions are executed,
// before they are; nothing that the module says can name what was added.
package meter

// Version counts what Rewrite has written: it grows with every change of that, for caches keep rewritten modules by it.
const Version = 5

// Names that a rewritten module uses. Modules that come with any of these are refused.
const (
	HostModule  = "ostro"
	SliceImport = ":slice" // (fuel left, negative) -> fuel
	Prefix      = "ostro:" // of exports
	FuelExport  = "ostro:fuel"
	StackExport = "ostro:stack"
	StateExport = "ostro:g" // and a number: the module's own variables
	EntryExport = "ostro:call"
)

// Names of exports that the host calls, by the entry.
const (
	FunctionPrefix = "ostro_fn_"   // () -> i32
	InitializeName = "_initialize" // ()
	AreaName       = "ostro_area"  // () -> i32
)

// Result is a rewritten module and what is known about it.
type Result struct {
	Module []byte
	Report Report
}

// Report is what rewriting learned about a module.
type Report struct {
	Functions     int  // of its own
	Unmetered     int  // so small that callers pay for them
	InRegisters   int  // with loops: their fuel is in a local
	Recursive     int  // count their stack
	Points        int  // places where fuel is charged
	BytesBefore   int  // of the module
	BytesAfter    int  //
	States        int  // exported variables of the module's own
	TableElements int  // that its tables have, or can grow to
	Restorable    bool // memory and variables are all the state that an instance has

	Entries []string `json:"-"` // exports that the entry calls, by number
}

// Rewrite returns the module with its metering. It refuses what exceeds the limits.
func Rewrite(b []byte, l Limits) (*Result, error) { return rewrite(b, l, false) }

// Plain returns the module with its entry and without metering, to compare with.
func Plain(b []byte, l Limits) (*Result, error) { return rewrite(b, l, true) }

func rewrite(b []byte, l Limits, plain bool) (*Result, error) {
	m, err := l.Decode(b)
	if err != nil {
		return nil, err
	}
	if err := l.check(m); err != nil {
		return nil, err
	}
	infos, err := survey(m, l)
	if err != nil {
		return nil, err
	}
	w := newRewriter(m, l, infos)
	w.plain = plain
	if err := w.rewrite(); err != nil {
		return nil, err
	}
	out := m.Encode()
	w.report.BytesBefore, w.report.BytesAfter = len(b), len(out)
	return &Result{out, w.report}, nil
}
