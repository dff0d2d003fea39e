package extension_test

import (
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/tenant/extension"
	"github.com/ostrodb/ostro/tenant/extension/local"
)

func newRuntime(tb testing.TB, opts extension.Options) *extension.Runtime {
	tb.Helper()
	r, err := extension.NewRuntime(tb.Context(), opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := r.Close(tb.Context()); err != nil {
			tb.Error(err)
		}
	})
	return r
}

func compile(tb testing.TB, name string) *extension.Module {
	tb.Helper()
	code, err := os.ReadFile("testdata/" + name + ".wasm")
	if err != nil {
		tb.Fatal(err)
	}
	m, err := newRuntime(tb, extension.Options{}).Compile(tb.Context(), code, extension.DefaultLimits())
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

func newPool(tb testing.TB, name string, opts extension.PoolOptions) *extension.Pool {
	tb.Helper()
	return poolOf(tb, compile(tb, name), extension.DefaultLimits(), opts)
}

func poolOf(tb testing.TB, m *extension.Module, limits extension.Limits, opts extension.PoolOptions) *extension.Pool {
	tb.Helper()
	p, err := m.NewPool(limits, opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Close)
	return p
}

// storeOf is data of lines key=value.
func storeOf(tb testing.TB, lines ...string) *local.Store {
	tb.Helper()
	s := local.New(nil)
	c := &extension.Changes{}
	for _, l := range lines {
		key, value, _ := strings.Cut(l, "=")
		c.Writes = append(c.Writes, extension.Write{Key: []byte(key), Value: []byte(value)})
	}
	if err := s.Commit(c); err != nil {
		tb.Fatal(err)
	}
	return s
}

func valueOf(s *local.Store, key string) string {
	buf := make([]byte, 1<<16)
	var v extension.Value
	if st := s.Get(0, []byte(key), buf, &v); st != extension.OK {
		return "(absent)"
	}
	return string(buf[:v.Len])
}

func invoke(p *extension.Pool, s extension.Store, fn string, keyAndArgs ...string) (extension.Result, error) {
	inv := &extension.Invocation{Function: fn, Store: s}
	for i, a := range keyAndArgs {
		if i == 0 {
			inv.Keys = append(inv.Keys, []byte(a))
		} else {
			inv.Args = append(inv.Args, []byte(a))
		}
	}
	return p.Call(inv)
}

func call(tb testing.TB, p *extension.Pool, s extension.Store, fn string, keyAndArgs ...string) string {
	tb.Helper()
	res, err := invoke(p, s, fn, keyAndArgs...)
	if err != nil {
		tb.Fatalf("%s: %v", fn, err)
	}
	return string(res.Response)
}

func wantKind(tb testing.TB, err error, kind extension.Kind) *extension.CallError {
	tb.Helper()
	var e *extension.CallError
	if !errors.As(err, &e) || e.Kind != kind {
		tb.Fatalf("error %v, want one of kind %s", err, kind)
	}
	return e
}

func u64(n uint64) string { return string(binary.LittleEndian.AppendUint64(nil, n)) }

func u32(n uint32) string { return string(binary.LittleEndian.AppendUint32(nil, n)) }
