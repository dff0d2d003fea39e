package extension_test

import (
	"strings"
	"testing"

	"github.com/ostrodb/ostro/tenant/extension"
	"github.com/ostrodb/ostro/tenant/extension/local"
)

func TestArgumentsAndResponsesPassThroughTheArea(t *testing.T) {
	p := newPool(t, "area", extension.PoolOptions{})
	s := storeOf(t, "k=value")
	res, err := invoke(p, s, "get", "k")
	if err != nil || string(res.Response) != "value" || res.HostCalls != 1 {
		t.Fatalf("%q, %d host calls, %v", res.Response, res.HostCalls, err)
	}
	if got, want := call(t, p, s, "echo", "k", "abc"), u32(1)+u32(1)+u32(1)+u32(3)+"kabc"; got != want {
		t.Fatalf("%q, want %q", got, want)
	}
	long := strings.Repeat("x", 1000)
	if got, want := call(t, p, s, "echo", "k", long), u32(1)+u32(1)+u32(1)+u32(1000)+"k"+long+"!"; got != want {
		t.Fatalf("%q, want %q", got, want)
	}
	if got := call(t, p, s, "get", "k"); got != "value" {
		t.Fatalf("%q after a call with long arguments", got)
	}
}

func TestAnAreaIsBelievedNoFurtherThanMemoryGoes(t *testing.T) {
	s := local.New(nil)
	for _, how := range []string{"length", "huge", "pointer"} {
		p := newPool(t, "area", extension.PoolOptions{})
		_, err := invoke(p, s, "lie", "k", how)
		wantKind(t, err, extension.Misused)
		if got := call(t, p, storeOf(t, "k=v"), "get", "k"); got != "v" {
			t.Fatalf("%q after a lie about its %s", got, how)
		}
	}
	p := newPool(t, "area", extension.PoolOptions{})
	call(t, p, s, "lie", "k", "arguments")
	if got := call(t, p, s, "echo", "k", "x"); got == "" {
		t.Fatal("no response")
	}
}

func TestAResponseInTheAreaIsNoLongerThanTheLimit(t *testing.T) {
	limits := extension.DefaultLimits()
	limits.Call.ResponseBytes = 10
	p := poolOf(t, compile(t, "area"), limits, extension.PoolOptions{})
	_, err := invoke(p, local.New(nil), "echo", "k", "abc")
	wantKind(t, err, extension.OverLimit)
}
