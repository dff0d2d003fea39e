package tenant

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// newAlone is the registry of a server that forgets.
func newAlone(t *testing.T) *Registry {
	t.Helper()
	book, err := OpenFile("")
	if err != nil {
		t.Fatal(err)
	}
	return newRegistry(t, book, newStore(t))
}

func TestMemoryOfFunctionsEndsAtTheTenantsLimit(t *testing.T) {
	r := newAlone(t)
	edit(t, r, create("a", Wish{Password: text("rose"), FunctionMemory: number(1000), FunctionCPU: number(500)}))
	a := r.Account("a")
	m := r.Memory(a)
	if m != r.MemoryOf("a") || m == r.Memory(nil) {
		t.Fatal("a tenant's functions do not share one memory of its own")
	}
	idle := int64(600)
	if err := m.Take(idle); err != nil {
		t.Fatal(err)
	}
	var e *Exceeded
	if err := m.Take(500); !errors.As(err, &e) || !strings.Contains(err.Error(), "limit of 1000 bytes of functions' memory") {
		t.Fatalf("error %v", err)
	}
	m.Relieve(func() { m.Give(idle) })
	if err := m.Take(500); err != nil {
		t.Fatalf("what idle instances had was not taken: %v", err)
	}
	u := r.Usage()[0]
	if u.FunctionMemory != 500 || u.FunctionRefused != 1 || u.Limits.Cores() != 0.5 {
		t.Fatalf("usage %+v", u)
	}
	if err := r.Memory(nil).Take(1 << 40); err != nil {
		t.Fatalf("the operator has no limit: %v", err)
	}
}

func TestALimitOfMemoryThatIsLoweredTakesWhatIsIdleAtOnce(t *testing.T) {
	r := newAlone(t)
	edit(t, r, create("a", Wish{Password: text("rose")}))
	m := r.Memory(r.Account("a"))
	m.Relieve(func() { m.Give(600) })
	if err := m.Take(1000); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ limit, left int64 }{{1000, 1000}, {500, 400}} {
		edit(t, r, func(all *Catalog) error { return all.Change("a", Wish{FunctionMemory: number(c.limit)}) })
		if got := m.Used(); got != c.left {
			t.Errorf("with a limit of %d bytes it has %d, want %d", c.limit, got, c.left)
		}
	}
}

func TestCallsOfATenantKeepOnlySoMuchAtATime(t *testing.T) {
	r := newAlone(t)
	edit(t, r, create("a", Wish{Password: text("rose")}))
	m := r.Memory(r.Account("a"))
	if err := m.Hold(heldMost); err != nil {
		t.Fatal(err)
	}
	if err := m.Hold(1); err == nil || !strings.Contains(err.Error(), "tenant a has reached its limit of 33554432 bytes that its calls keep at a time: have fewer such calls") {
		t.Errorf("one more: %v", err)
	}
	if err := r.Memory(nil).Hold(1); err != nil {
		t.Errorf("somebody else: %v", err)
	}
	m.Release(heldMost)
	if err := m.Hold(1); err != nil {
		t.Error(err)
	}
}

func TestTheLimitOfCoresHoldsAtOnce(t *testing.T) {
	r := newAlone(t)
	edit(t, r, create("a", Wish{Password: text("rose")}))
	share := r.Share(r.Account("a"))
	share.Charge(int64(time.Hour))
	if !share.Inline() {
		t.Fatal("it has no limit")
	}
	edit(t, r, func(c *Catalog) error { return c.Change("a", Wish{FunctionCPU: number(1)}) })
	share.Charge(int64(time.Second))
	if share.Inline() {
		t.Fatal("it has used a thousand seconds of its thousandth of a core")
	}
}

func TestCoresAreReadInThousandths(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "0.5": 500, "2": 2000, "0.001": 1} {
		if got, err := ParseCores(text); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "x", "-1", "NaN", "Inf", "0.0001", "1e7"} {
		if got, err := ParseCores(text); err == nil {
			t.Errorf("%q was read as %d", text, got)
		}
	}
}
