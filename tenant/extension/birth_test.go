package extension_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/ostrodb/ostro/tenant/extension"
	"github.com/ostrodb/ostro/tenant/extension/local"
	"github.com/ostrodb/ostro/tenant/extension/wasm"
)

// born is a module whose function "f" responds with the first 16 bytes of its memory, which start and initialize have
// filled in. They can call random, function 0, and resp, function 1.
func born(start, initialize []byte) *wasm.Module {
	m := &wasm.Module{
		Types: []wasm.FuncType{
			{Results: []byte{wasm.I32}},
			{},
			{Params: []byte{wasm.I32, wasm.I32}},
			{Params: []byte{wasm.I32, wasm.I32}, Results: []byte{wasm.I32}},
		},
		Funcs:    []uint32{0, 1, 1},
		Memories: []wasm.Limits{{Min: 1}},
		Code: []wasm.Code{
			{Body: []byte{0x41, 0, 0x41, 16, 0x10, 1, 0x0b}}, // i32.const 0, i32.const 16, call resp
			{Body: append(start, 0x0b)},
			{Body: append(initialize, 0x0b)},
		},
	}
	m.AddImport("ostro", "random", 2)
	m.AddImport("ostro", "resp", 3)
	m.Exports = []wasm.Export{
		{Name: "memory", Kind: wasm.KindMemory},
		{Name: "ostro_fn_f", Kind: wasm.KindFunc, Index: 2},
		{Name: "_initialize", Kind: wasm.KindFunc, Index: 4},
	}
	first := uint32(3)
	m.Start = &first
	return m
}

var (
	seed = []byte{0x41, 0, 0x41, 16, 0x10, 0} // i32.const 0, i32.const 16, call random
	loop = []byte{0x03, 0x40, 0x0c, 0, 0x0b}  // loop, br 0
	// grow notes at 0 how much memory there was before it grew by four pages, or -1.
	grow = []byte{0x41, 0, 0x41, 4, 0x40, 0, 0x36, 2, 0} // i32.const 0, i32.const 4, memory.grow, i32.store
)

func compiled(tb testing.TB, m *wasm.Module) *extension.Module {
	tb.Helper()
	c, err := newRuntime(tb, extension.Options{}).Compile(tb.Context(), m.Encode(), extension.DefaultLimits())
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func TestRandomBytesOfAStartFunctionAreNotShared(t *testing.T) {
	for name, m := range map[string]*wasm.Module{"start": born(seed, nil), "initialize": born(nil, seed)} {
		c := compiled(t, m)
		one, other := poolOf(t, c, extension.DefaultLimits(), extension.PoolOptions{}), poolOf(t, c, extension.DefaultLimits(), extension.PoolOptions{})
		if a, b := call(t, one, local.New(nil), "f", "k"), call(t, other, local.New(nil), "f", "k"); a == b {
			t.Errorf("%s: two tenants have the same secret, %x", name, a)
		}
	}
}

func TestAnInstanceThatGotNoMemoryIsNoExampleForOthers(t *testing.T) {
	c := compiled(t, born(nil, grow))
	poor := poolOf(t, c, extension.DefaultLimits(), extension.PoolOptions{Memory: &purse{limit: page}})
	rich := poolOf(t, c, extension.DefaultLimits(), extension.PoolOptions{})
	if got := call(t, poor, local.New(nil), "f", "k"); got[:4] != u32(1<<32-1) {
		t.Fatalf("it got memory: %x", got)
	}
	if got := call(t, rich, local.New(nil), "f", "k"); got[:4] != u32(1) {
		t.Fatalf("another tenant begins without memory, too: %x", got)
	}
}

func TestATrialMakesNoInstance(t *testing.T) {
	for _, m := range []*wasm.Module{born(loop, nil), born(nil, loop), born(nil, nil)} {
		p := poolOf(t, compiled(t, m), extension.DefaultLimits(), extension.PoolOptions{})
		if _, err := p.Call(trial("f", "k", local.New(nil))); !errors.Is(err, extension.ErrBusy) || p.Metrics().Made != 0 {
			t.Errorf("%d instances were made, %v", p.Metrics().Made, err)
		}
	}
}

func TestCodeBeforeTheFirstCallHasLittleFuelAndLetsOthersRun(t *testing.T) {
	for name, m := range map[string]*wasm.Module{"start": born(loop, nil), "initialize": born(nil, loop)} {
		limits := extension.DefaultLimits()
		p := poolOf(t, compiled(t, m), limits, extension.PoolOptions{})
		yields := int64(0)
		_, err := p.Call(&extension.Invocation{Function: "f", Store: local.New(nil), Turns: turns(func(extension.Reason) error {
			yields++
			return nil
		})})
		wantKind(t, err, extension.OutOfFuel)
		if most := limits.Call.Fuel / 5 / limits.Call.Slice; yields < 2 || yields > most {
			t.Errorf("%s: others could run %d times, want some and no more than %d", name, yields, most)
		}
	}
}

// Who begins anew maps the file of the image, which must still be that file.
func TestAnImageIsNotMappedOnceItIsClosed(t *testing.T) {
	m := born(nil, []byte{0x41, 0x80, 0x02, 0x41, 16, 0x10, 0}) // random bytes at 256: the image is the pool's own.
	m.Memories[0].Min = 4
	m.Datas = []wasm.Data{{Offset: wasm.Const{Instr: wasm.Instr{Op: wasm.I32Const}}, Bytes: make([]byte, 200<<10)}}
	for i := range m.Datas[0].Bytes {
		m.Datas[0].Bytes[i] = 'x'
	}
	c := compiled(t, m)
	for range 200 {
		p := poolOf(t, c, extension.DefaultLimits(), extension.PoolOptions{Fresh: true})
		if err := p.Warm(1); err != nil {
			t.Fatal(err)
		}
		var both sync.WaitGroup
		both.Go(func() {
			got, err := invoke(p, local.New(nil), "f", "k")
			if err != nil && !errors.Is(err, extension.ErrClosed) || err == nil && string(got.Response) != "xxxxxxxxxxxxxxxx" {
				t.Errorf("%q, %v", got.Response, err)
			}
		})
		both.Go(p.Close)
		both.Wait()
	}
}
