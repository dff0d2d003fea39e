package functions

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ostrodb/ostro/examples/functions"
	"github.com/ostrodb/ostro/tenant/extension"
)

// guest is a module with a store of its own and a clock that tests move.
type guest struct {
	pool *extension.Pool
	data table
	ttl  map[string]time.Duration // of what was written last
	log  []string
	now  time.Time

	hostCalls int64 // of the last call
}

// tester is what *testing.T and *rapid.T have in common.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

func newGuest(t *testing.T, module []byte) *guest {
	t.Helper()
	ctx := context.Background()
	r, err := extension.NewRuntime(ctx, extension.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(ctx) })
	limits := extension.DefaultLimits()
	m, err := r.Compile(ctx, module, limits)
	if err != nil {
		t.Fatal(err)
	}
	g := &guest{data: table{}, ttl: map[string]time.Duration{}, now: time.Unix(1_800_000_000, 0)}
	g.pool, err = m.NewPool(limits, extension.PoolOptions{Limits: limits.Call, Clock: &extension.Clock{Source: func() time.Time { return g.now }}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.pool.Close)
	return g
}

func newExample(t *testing.T, name string) *guest {
	t.Helper()
	module, err := functions.Module(name)
	if err != nil {
		t.Fatal(err)
	}
	return newGuest(t, module)
}

// try invokes a function; arguments are printed as fmt does, bytes as they are.
func (g *guest) try(function, key string, args ...any) (string, error) {
	return g.invoke(invocation(function, key, args...))
}

func invocation(function, key string, args ...any) *extension.Invocation {
	inv := &extension.Invocation{Function: function}
	if key != "" {
		inv.Keys = [][]byte{[]byte(key)}
	}
	for _, a := range args {
		switch a := a.(type) {
		case []byte:
			inv.Args = append(inv.Args, a)
		default:
			inv.Args = append(inv.Args, fmt.Append(nil, a))
		}
	}
	return inv
}

func (g *guest) invoke(inv *extension.Invocation) (string, error) {
	s := shelf{g.data, g.ttl}
	inv.Store, inv.Prompt = s, s
	inv.Log = func(level int, line []byte) { g.log = append(g.log, fmt.Sprintf("%d %s", level, line)) }
	res, err := g.pool.Call(inv)
	g.hostCalls = res.HostCalls
	return string(res.Response), err
}

func (g *guest) call(t tester, function, key string, args ...any) string {
	t.Helper()
	answer, err := g.try(function, key, args...)
	if err != nil {
		t.Fatalf("%s %s %q: %v", function, key, args, err)
	}
	return answer
}

// refused invokes a function that must fail with a code, and leave the store alone.
func (g *guest) refused(t tester, code int32, function, key string, args ...any) {
	t.Helper()
	before := fmt.Sprint(g.data)
	_, err := g.try(function, key, args...)
	var failed *extension.CallError
	if !errors.As(err, &failed) || failed.Kind != extension.Failed || failed.Code != code {
		t.Fatalf("%s %s %q: %v, want code %d", function, key, args, err, code)
	}
	if after := fmt.Sprint(g.data); after != before {
		t.Fatalf("%s failed and wrote all the same: %s, before %s", function, after, before)
	}
}

// table is a store in memory: one table, number 0.
type table map[string]string

func (d table) Get(number uint32, key, buf []byte, found *extension.Value) extension.Status {
	if number != 0 {
		return extension.NoSuchTable
	}
	value, there := d[string(key)]
	if !there {
		return extension.Absent
	}
	found.Len, found.Version = len(value), 1
	if copy(buf, value) < len(value) {
		found.Whole = []byte(value)
	}
	return extension.OK
}

// Prompt gives what is there.
func (d table) Prompt(key, buf []byte, found *extension.Value) bool {
	return d.Get(0, key, buf, found) == extension.OK && found.Len <= len(buf)
}

// Scan gives three keys at a time, so that functions have to come back.
func (d table) Scan(_ uint32, cursor uint64, prefix []byte, visit func(key, value []byte) bool) (next uint64, looked int, st extension.Status) {
	var keys []string
	for key := range d {
		if strings.HasPrefix(key, string(prefix)) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for n := 0; int(cursor) < len(keys); n++ {
		key := keys[cursor]
		if n == 3 || !visit([]byte(key), []byte(d[key])) {
			return cursor, n, extension.OK
		}
		cursor++
	}
	return 0, len(keys), extension.OK
}

// shelf is a table that can be written.
type shelf struct {
	table
	ttl map[string]time.Duration
}

func (s shelf) Commit(c *extension.Changes) error {
	for _, w := range c.Writes {
		if w.Delete {
			delete(s.table, string(w.Key))
			continue
		}
		s.table[string(w.Key)] = string(w.Value)
		s.ttl[string(w.Key)] = w.TTL
	}
	return nil
}

// ci tells whether nothing may be skipped.
func ci() bool { return os.Getenv("CI") != "" }
