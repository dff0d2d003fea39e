package session_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostrodb/ostro/client"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server/session"
	"github.com/ostrodb/ostro/tenant"
)

// sharedCallers is a server with functions that tenants share; each one's password is its name.
func sharedCallers(t *testing.T, tenants map[string]tenant.Wish) (addr string) {
	t.Helper()
	st := openStore(t, store.Options{})
	o := withFunctions(t, st, session.Options{Access: access("operator", false)})
	for name, wish := range tenants {
		wish.Password = &name
		if err := o.Tenants.Edit(t.Context(), func(c *tenant.Catalog) error { return c.Create(name, wish, time.Now()) }); err != nil {
			t.Fatal(err)
		}
	}
	_, addr = serve(t, st, o)
	return addr
}

func testModule(t testing.TB) []byte {
	t.Helper()
	code, err := os.ReadFile("../call/testdata/calls.wasm")
	if err != nil {
		t.Fatal(err)
	}
	return code
}

func TestModulesAreInstalledReplacedListedAndDeletedByNativeClients(t *testing.T) {
	addr := sharedCallers(t, map[string]tenant.Wish{"anna": {}, "bert": {}})
	anna, bert, ctx, code := member(t, addr, "anna"), member(t, addr, "bert"), t.Context(), testModule(t)
	put := client.Invoke(0, b("k"), "put", b("v"))
	if _, err := anna.Do(ctx, put); err == nil || !strings.Contains(err.Error(), "there is no function put") {
		t.Errorf("before it is installed: %v", err)
	}
	for range 2 { // Once more, as after an answer that was lost.
		if err := anna.InstallModule(ctx, "mine", code, false); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := anna.Do(ctx, put); err != nil {
		t.Fatal(err)
	}
	if _, err := bert.Do(ctx, put); err == nil {
		t.Error("another tenant calls it")
	}
	if err := anna.InstallModule(ctx, "mine", append(code, 0, 2, 1, 'x'), false); err == nil || !strings.Contains(err.Error(), "replace it") {
		t.Errorf("another one of the same name: %v", err)
	}
	if err := anna.InstallModule(ctx, "mine", append(code, 0, 2, 1, 'x'), true); err != nil {
		t.Error(err)
	}
	list, err := anna.Modules(ctx)
	if err != nil || len(list) != 1 || list[0].Name != "mine" || list[0].Version != 2 || len(list[0].Functions) < 5 || list[0].Bytes != int64(len(code)+4) || list[0].Installed.IsZero() {
		t.Errorf("the list is %+v, %v", list, err)
	}
	if others, err := bert.Modules(ctx); err != nil || len(others) != 0 {
		t.Errorf("another tenant lists %+v, %v", others, err)
	}
	if err := bert.DeleteModule(ctx, "mine"); !errors.Is(err, client.ErrNoModule) {
		t.Errorf("another tenant deletes it: %v", err)
	}
	for what, err := range map[string]error{
		"a name that cannot be":   anna.InstallModule(ctx, "no name", code, false),
		"a name without end":      anna.InstallModule(ctx, strings.Repeat("n", 300), code, false),
		"what is no module":       anna.InstallModule(ctx, "other", []byte("no module"), false),
		"a module of 9 megabytes": anna.InstallModule(ctx, "other", make([]byte, 9<<20), false),
	} {
		if err == nil {
			t.Errorf("%s is taken", what)
		}
	}
	if err := anna.DeleteModule(ctx, "mine"); err != nil {
		t.Error(err)
	}
	if _, err := anna.Do(ctx, put); err == nil {
		t.Error("a deleted module is called")
	}
}

// A flood of installations is refused beyond a few at a time, and other operations of the session go on.
func TestInstallationsHoldUpNothingElseOfTheirSession(t *testing.T) {
	addr := sharedCallers(t, map[string]tenant.Wish{"anna": {}})
	anna, ctx, code := member(t, addr, "anna"), t.Context(), testModule(t)
	var all sync.WaitGroup
	for i := range 30 {
		all.Go(func() {
			err := anna.InstallModule(ctx, "mine", append(code, 0, 2, 1, byte(i)), true)
			if err != nil && !strings.Contains(err.Error(), "wait for one of them") {
				t.Error(err)
			}
		})
	}
	for i := range 200 {
		if _, err := anna.Put(ctx, 0, fmt.Append(nil, i), b("v")).Wait(); err != nil {
			t.Fatal(err)
		}
	}
	all.Wait()
	if list, err := anna.Modules(ctx); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestNoNativeOperationCrossesTheWall has a tenant run every operation on all kinds of tables, and functions that read, write and
// list whatever they can.
func TestNoNativeOperationCrossesTheWall(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	two := 2
	addr := sharedCallers(t, map[string]tenant.Wish{"anna": {Databases: &two}, "mallory": {Databases: &two}})
	ctx, code := t.Context(), testModule(t)
	owners := map[string]*client.Client{"anna": member(t, addr, "anna"), "operator": dial(t, "ostro://:operator@"+addr, client.Options{})}
	for whose, c := range owners {
		for table := range 2 {
			for n := range 20 {
				if _, err := c.Put(ctx, table, fmt.Append(nil, "k", n), fmt.Appendf(nil, "SECRET-%s-%d", whose, n)).Wait(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	mallory := member(t, addr, "mallory")
	if err := mallory.InstallModule(ctx, "calls", code, false); err != nil {
		t.Fatal(err)
	}
	tables := []int{0, 1, 2, 3, 15, 16, 255, 4096, 32767, 65534, 65535}
	number := func() []byte {
		return fmt.Append(nil, []int{0, 1, 2, 15, 65535, 65536, 65537, 65538, 1 << 31, 1<<32 - 1}[r.IntN(10)])
	}
	check := func(what string, got ...[]byte) {
		for _, g := range got {
			if strings.Contains(string(g), "SECRET") {
				t.Fatalf("%s shows another's data: %q", what, g)
			}
		}
	}
	for range 600 {
		table, k := tables[r.IntN(len(tables))], fmt.Append(nil, "k", r.IntN(20))
		for i, op := range []client.Op{
			client.Get(table, k), client.Put(table, k, b("mallory")), client.Add(table, k, 1), client.Append(table, k, b("m")), client.Insert(table, k, b("mallory")),
			client.Merge(table, k, "max", b("z")), client.Delete(table, k), client.Get(table, k).IfVersion(0), client.Put(table, k, b("m")).ExpireAt(time.Now()),
			client.Invoke(table, k, "look"), client.Invoke(table, k, "peek", number()), client.Invoke(table, k, "put", b("mallory"), number()),
			client.Invoke(table, k, "list", nil, b("4000")), client.Invoke(table, k, "count", b("1")),
		} {
			res, err := mallory.Do(ctx, op)
			check(fmt.Sprint("operation ", i, " on table ", table), res.Value, fmt.Append(nil, err))
		}
	}
	for _, table := range tables {
		for e := range mallory.Scan(ctx, table, client.ScanOptions{}) {
			check("a scan", e.Value, e.Key)
		}
		values, _ := mallory.MultiGet(ctx, table, [][]byte{b("k1"), b("k2")})
		for _, v := range values {
			check("a multi-get", v.Value)
		}
		_ = mallory.MultiPut(ctx, table, client.Entry{Key: b("k1"), Value: b("mallory")}) // Where it has no table it is told so.
	}
	for whose, c := range owners {
		for table := range 2 {
			for n := range 20 {
				got, err := c.Get(ctx, table, fmt.Append(nil, "k", n)).Wait()
				if want := fmt.Sprintf("SECRET-%s-%d", whose, n); err != nil || string(got.Value) != want {
					t.Errorf("%s: key %d of table %d is %q, %v", whose, n, table, got.Value, err)
				}
			}
		}
	}
}

// Limits hold for functions of native clients, too, and say what to do. That of their memory has a test with a whole node.
func TestInvocationsOverALimitAreToldSo(t *testing.T) {
	few, little, one := int64(10), int64(1), int64(1)
	addr := sharedCallers(t, map[string]tenant.Wish{
		"rate": {Operations: &few}, "bytes": {Bytes: &little}, "inflight": {InFlight: &one},
	})
	ctx, code := t.Context(), testModule(t)
	refused := func(name, want string, op client.Op) {
		t.Helper()
		c := member(t, addr, name)
		for err := error(nil); ; {
			if err = c.InstallModule(ctx, "calls", code, false); err == nil {
				break
			}
			if name != "rate" {
				t.Fatal(err)
			}
		}
		var futures []*client.Future
		for range 100 {
			futures = append(futures, c.Go(ctx, op))
		}
		found := 0
		for _, f := range futures {
			if _, err := f.Wait(); err != nil {
				if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "limit raised") {
					t.Fatalf("%s: %v", name, err)
				}
				found++
			}
		}
		if found == 0 {
			t.Errorf("%s: none of 100 calls was refused", name)
		}
	}
	refused("rate", "tenant rate has reached its limit of 10 operations a second: wait", client.Invoke(0, b("k"), "put", b("v")))
	refused("bytes", "tenant bytes has reached its limit of 1 bytes: delete something", client.Invoke(0, b("k"), "put", b("v")))
	refused("inflight", "tenant inflight has reached its limit of 1 operations that wait: have fewer at a time", client.Invoke(0, b("k"), "count", b(longWork)))
}
