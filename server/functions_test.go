package server_test

import (
	"strings"
	"testing"

	"github.com/ostrodb/ostro/tenant/library/librarytest"
)

func TestAModuleThatNeedsMoreMemoryThanItsTenantHasIsRefusedByThatLimit(t *testing.T) {
	config := testConfig(t, "")
	config.RequirePass = "operator"
	n := start(t, config)
	if got := <-ask(t, n, "TENANT", "CREATE", "anna", "password", "secret", "function-memory", "100000"); got != "+OK" {
		t.Fatalf("the tenant is not there: %s", got)
	}
	code := "#!wasm name=m\n" + string(librarytest.Module(strings.Repeat("x", 200_000), "f"))
	if got := <-ask(t, n, "TENANT", "FUNCTION", "anna", "LOAD", code); !strings.HasPrefix(got, "-QUOTA ") || strings.Contains(got, "runtime error") {
		t.Errorf("LOAD answers %q", got)
	}
	if got := <-ask(t, n, "FUNCTION", "LOAD", code); got != "$1" {
		t.Errorf("who has no such limit is answered %q", got)
	}
}
