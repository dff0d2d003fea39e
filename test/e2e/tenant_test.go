package e2e

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestTenantsAreMadeUsedAndDeletedFromTheCommandLine(t *testing.T) {
	t.Setenv("REDISCLI_AUTH", "operator")
	dir := t.TempDir()
	p := serve(t, dir, "--requirepass", "operator")
	tenant := func(stdin string, args ...string) outcome {
		t.Helper()
		return run(t, stdin, append(append([]string{"tenant"}, args...), "-p", p.port)...)
	}
	var made struct{ Name, Password string }
	o := tenant("", "create", "shop", "--json", "--bytes", "100KB")
	if err := json.Unmarshal([]byte(o.stdout), &made); err != nil || made.Name != "shop" || len(made.Password) < 20 {
		t.Fatalf("%+v, %v\n%s", made, err, o.stderr)
	}
	tenant("rose\n", "create", "anna", "--password", "-").wants(t, 0, "tenant anna is there")
	tenant("", "create", "anna").wants(t, 1, "there is a tenant of that name already")
	tenant("", "create", "a b").wants(t, 1, "is no name for a tenant")
	tenant("", "create", "carl", "--bytes", "much").wants(t, 2, "--bytes")
	tenant("", "create", "carl", "--function-cpu", "much").wants(t, 2, "--function-cpu", "is no number of cores")
	tenant("", "set", "anna").wants(t, 2, "nothing to change is given")
	tenant("", "set", "anna", "--function-cpu", "0.25", "--function-memory", "48MB").wants(t, 0, "is changed")
	tenant("", "list").wants(t, 0, "FUNCTION MEMORY", "0.25", "48")
	tenant("", "set", "nobody", "--operations", "1").wants(t, 1, "there is no such tenant")
	as := func(user, password string, args ...string) outcome {
		t.Helper()
		return p.redisCLI("", append([]string{"--no-auth-warning", "--user", user, "--pass", password}, args...)...)
	}
	as("shop", made.Password, "SET", "k", "the shop's").wants(t, 0, "OK")
	as("anna", "rose", "SET", "k", "anna's").wants(t, 0, "OK")
	as("shop", made.Password, "SET", "large", strings.Repeat("x", 110_000)).wants(t, 0, "OK")
	as("shop", made.Password, "SET", "more", "x").wants(t, 0, "QUOTA", "102400 bytes", "delete something")
	as("shop", "rose", "GET", "k").wants(t, 0, "WRONGPASS", "NOAUTH")
	tenant("", "list").wants(t, 0, "anna", "shop", "100")
	tenant("", "top", "--times", "1", "--every", "10ms").wants(t, 0, "OPS/S", "shop")
	p.Kill()
	p = serve(t, dir, "--requirepass", "operator")
	as("shop", made.Password, "GET", "k").wants(t, 0, "the shop's")
	as("anna", "rose", "GET", "k").wants(t, 0, "anna's")
	tenant("", "delete", "shop").wants(t, 2, "--yes")
	tenant("", "delete", "shop", "--yes").wants(t, 0, "is gone")
	as("shop", made.Password, "GET", "k").wants(t, 0, "WRONGPASS")
	as("anna", "rose", "GET", "k").wants(t, 0, "anna's")
	if strings.Contains(run(t, "", "tenant", "list", "-p", p.port).stdout, "shop") {
		t.Error("a deleted tenant is listed")
	}
	t.Setenv("REDISCLI_AUTH", "wrong")
	tenant("", "list").wants(t, 1, "WRONGPASS")
}
