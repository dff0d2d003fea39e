package extension

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/tenant/extension/wasm"
)

// recursion is a module whose function "f" calls itself so deeply, with so many vectors as arguments that it keeps meanwhile.
func recursion(depth int64, vectors int) *wasm.Module {
	deeper := []byte{0x20, 0, 0x45, 0x04, wasm.I32, 0x41, 0, 0x05, 0x20, 0, 0x41, 1, 0x6b} // n == 0: 0, else: n-1,
	var use, zeros []byte
	for i := range vectors {
		local := wasm.AppendUint([]byte{0x20}, uint64(i+1))
		deeper = append(deeper, local...)
		use = append(append(use, local...), 0xfd, 0x1b, 0, 0x6a) // i32x4.extract_lane 0, i32.add
		zeros = append(append(zeros, 0xfd, 0x0c), make([]byte, 16)...)
	}
	deeper = append(append(append(deeper, 0x10, 0), use...), 0x0b, 0x0b) // the vectors, call 0, all of them added to its result
	begin := append(wasm.AppendInt([]byte{0x41}, depth), zeros...)
	return &wasm.Module{
		Types: []wasm.FuncType{
			{Params: append([]byte{wasm.I32}, bytes.Repeat([]byte{wasm.V128}, vectors)...), Results: []byte{wasm.I32}},
			{Results: []byte{wasm.I32}},
		},
		Funcs:    []uint32{0, 1},
		Memories: []wasm.Limits{{}},
		Exports:  []wasm.Export{{Name: "memory", Kind: wasm.KindMemory}, {Name: "ostro_fn_f", Kind: wasm.KindFunc, Index: 1}},
		Code:     []wasm.Code{{Body: deeper}, {Body: append(begin, 0x10, 0, 0x1a, 0x41, 0, 0x0b)}},
	}
}

func poolFor(t *testing.T, m *wasm.Module, money Allowance) *Pool {
	t.Helper()
	r, err := NewRuntime(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(t.Context()) })
	mod, err := r.Compile(t.Context(), m.Encode(), DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	p, err := mod.NewPool(DefaultLimits(), PoolOptions{Memory: money})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// till is an allowance that notes the most that was taken.
type till struct{ used, most, limit int64 }

var errEmpty = errors.New("the till is empty")

func (c *till) Take(n int64) error {
	if c.used+n > c.limit {
		return errEmpty
	}
	c.used += n
	c.most = max(c.most, c.used)
	return nil
}
func (c *till) Give(n int64)   { c.used -= n }
func (*till) Hold(int64) error { return nil }
func (*till) Release(int64)    {}
func (*till) Scarce() bool     { return false }

// deepest is the stack of a call on an instance that is made for it, as it is before it is let go.
func deepest(t *testing.T, p *Pool) (int, error) {
	t.Helper()
	in, err := p.newInstance(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer in.close()
	in.choose("f")
	in.prepare(&Invocation{Function: "f", Store: nothing{}}, 8)
	err = in.enter()
	return len(*in.stack), err
}

func TestTheStackIsNotMuchLargerThanItsLimitWhateverIsOnIt(t *testing.T) {
	limit := DefaultLimits().Module.StackBytes
	for _, vectors := range []int{0, 1, 20, 200} {
		p := poolFor(t, recursion(1_000_000, vectors), nil)
		// The runtime doubles a stack, so half of it may be empty.
		if got, err := deepest(t, p); err == nil || got > 3*limit || got < limit/8 {
			t.Errorf("with %d vectors a frame: a stack of %d bytes, and the limit is %d (%v)", vectors, got, limit, err)
		}
	}
}

func TestALargeStackIsLetGoAfterItsCall(t *testing.T) {
	money := &till{limit: 1 << 30}
	p := poolFor(t, recursion(2000, 2), money)
	var l Lease
	defer l.End()
	for range 2 {
		var res Result
		if err := l.Call(p, &Invocation{Function: "f", Store: nothing{}}, &res); err != nil {
			t.Fatal(err)
		}
		if got := len(*l.in.stack); got == 0 || got > keptStack {
			t.Fatalf("after its call the instance has a stack of %d bytes", got)
		}
	}
	if money.used != 0 {
		t.Errorf("%d bytes of it are still taken", money.used)
	}
}

func TestASmallStackIsKeptAndPaidFor(t *testing.T) {
	money := &till{limit: 1 << 30}
	p := poolFor(t, recursion(200, 0), money)
	var l Lease
	var res Result
	if err := l.Call(p, &Invocation{Function: "f", Store: nothing{}}, &res); err != nil {
		t.Fatal(err)
	}
	if got := int64(len(*l.in.stack)); money.used == 0 || money.used > got || got > keptStack {
		t.Errorf("for a stack of %d bytes %d were taken", got, money.used)
	}
	l.End()
	p.Trim(0)
	if money.used != 0 {
		t.Errorf("%d bytes did not come back", money.used)
	}
}

func TestACallWhoseTenantHasNoMemoryForItsStackEnds(t *testing.T) {
	money := &till{limit: 100 << 10}
	p := poolFor(t, recursion(9000, 0), money)
	call := func() error {
		_, err := p.Call(&Invocation{Function: "f", Store: nothing{}})
		return err
	}
	var e *CallError
	if err := call(); !errors.As(err, &e) || e.Kind != OverLimit || !strings.Contains(e.Message, "for its stack: the till is empty") {
		t.Errorf("with little memory: %v", err)
	}
	if money.used > keptStack {
		t.Errorf("%d bytes are taken afterwards", money.used)
	}
	money.limit = 1 << 30
	if err := call(); err != nil {
		t.Errorf("with enough of it: %v", err)
	}
	if money.most < 256<<10 {
		t.Errorf("%d bytes were taken while its stack was large", money.most)
	}
}

func TestTablesArePaidFor(t *testing.T) {
	money := &till{limit: 1 << 30}
	m := recursion(1, 0)
	m.Tables = []wasm.Table{{Type: wasm.FuncRef, Limits: wasm.Limits{Min: 65_000}}}
	p := poolFor(t, m, money)
	if err := p.Warm(1); err != nil {
		t.Fatal(err)
	}
	if money.used != 8*65_000 {
		t.Errorf("%d bytes were taken for 65,000 elements", money.used)
	}
	p.Trim(0)
	if money.used != 0 {
		t.Errorf("%d bytes did not come back", money.used)
	}
	money.limit = 1000
	if err := p.Warm(1); !errors.Is(err, errEmpty) {
		t.Errorf("without memory for them: %v", err)
	}
}
