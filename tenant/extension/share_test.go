package extension_test

import (
	"sync"
	"testing"

	"github.com/ostrodb/ostro/tenant/extension"
	"github.com/ostrodb/ostro/tenant/extension/local"
)

func TestTheSameCodeIsCompiledOnceAndInstancesAreNotShared(t *testing.T) {
	r := newRuntime(t, extension.Options{})
	code, limits := readGuest(t, "work"), extension.DefaultLimits()
	all := make([]*extension.Module, 8)
	var tenants sync.WaitGroup
	for i := range all {
		tenants.Go(func() {
			m, err := r.Compile(t.Context(), code, limits)
			if err != nil {
				t.Error(err)
				return
			}
			all[i] = m
		})
	}
	tenants.Wait()
	for i, m := range all {
		if m != all[0] {
			t.Fatalf("tenant %d has a module of its own", i)
		}
		p := poolOf(t, m, limits, extension.PoolOptions{})
		if got := call(t, p, local.New(nil), "state", "k"); got != u32(1) {
			t.Fatalf("tenant %d sees what another has done: %q", i, got)
		}
	}
	limits.Module.MemoryPages = 20
	other, err := r.Compile(t.Context(), code, limits)
	if err != nil || other == all[0] {
		t.Fatalf("with other limits it is the same module: %v", err)
	}
}

func TestAModuleLivesUntilTheLastHasClosedIt(t *testing.T) {
	r := newRuntime(t, extension.Options{})
	code, limits := readGuest(t, "work"), extension.DefaultLimits()
	compile := func() *extension.Module {
		m, err := r.Compile(t.Context(), code, limits)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	first, second := compile(), compile()
	p := poolOf(t, second, limits, extension.PoolOptions{})
	_ = first.Close(t.Context())
	call(t, p, local.New(nil), "empty", "k")
	p.Close()
	_ = second.Close(t.Context())
	if third := compile(); third == second {
		t.Fatal("a module that all have closed is given out again")
	}
	if _, err := r.Compile(t.Context(), []byte("no module"), limits); err == nil {
		t.Fatal("nonsense is compiled")
	}
}
