package tenant

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/tenant/sched"
)

func text(s string) *string   { return &s }
func number(n int64) *int64   { return &n }
func quiet() *slog.Logger     { return slog.New(slog.DiscardHandler) }
func at(rest int64) time.Time { return time.Unix(rest, 0) }

func newStore(t *testing.T) *store.Store {
	t.Helper()
	st, err := store.Open(store.Options{SegmentBytes: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

func newRegistry(t *testing.T, book Book, st *store.Store) *Registry {
	t.Helper()
	r, err := Open(context.Background(), book, st, quiet(), sched.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func edit(t *testing.T, r *Registry, f func(*Catalog) error) {
	t.Helper()
	if err := r.Edit(context.Background(), f); err != nil {
		t.Fatal(err)
	}
}

func create(name string, w Wish) func(*Catalog) error {
	return func(c *Catalog) error { return c.Create(name, w, at(1)) }
}

func put(t *testing.T, st *store.Store, db int, key, value string) {
	t.Helper()
	ss, err := st.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer ss.Close()
	ss.Begin()
	defer ss.End()
	k := ss.Key(db, []byte(key))
	if status := ss.Put(&k, store.Write{Value: []byte(value)}, nil); status != store.OK {
		t.Fatal(status, ss.Err())
	}
}

func TestOnlyWhoKnowsThePasswordIsTheTenant(t *testing.T) {
	file, err := OpenFile("")
	if err != nil {
		t.Fatal(err)
	}
	r := newRegistry(t, file, newStore(t))
	edit(t, r, create("anna", Wish{Password: text("rose")}))
	for _, c := range []struct {
		name, password string
		right          bool
	}{{"anna", "rose", true}, {"anna", "Rose", false}, {"anna", "", false}, {"bert", "rose", false}, {"", "", false}} {
		if _, right := r.Authenticate([]byte(c.name), []byte(c.password)); right != c.right {
			t.Errorf("%q with %q: %v, want %v", c.name, c.password, right, c.right)
		}
	}
	edit(t, r, func(c *Catalog) error { return c.Change("anna", Wish{Password: text("tulip")}) })
	if _, right := r.Authenticate([]byte("anna"), []byte("rose")); right {
		t.Error("the old password still holds")
	}
}

func TestWhatADeletedTenantHadIsNobodysEverAfter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tenants.json")
	file, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	st := newStore(t)
	r := newRegistry(t, file, st)
	edit(t, r, create("anna", Wish{Password: text("rose")}))
	account := r.Account("anna")
	was := account.Tenant().First
	put(t, st, was, "k", "v")
	edit(t, r, func(c *Catalog) error { return c.Delete("anna") })
	if !account.Gone() {
		t.Error("who still has the account is not told")
	}
	file, err = OpenFile(path) // As after a restart.
	if err != nil {
		t.Fatal(err)
	}
	again := newRegistry(t, file, st)
	edit(t, again, create("anna", Wish{Password: text("rose")}))
	is := again.Account("anna").Tenant().First
	if keys, _ := st.Count(is); is == was || keys != 0 {
		t.Errorf("another tenant of the same name has database %d with %d keys; the first one had %d", is, keys, was)
	}
	await.True(t, "one database is open", func() bool { return len(st.Private()) == 1 })
}

func TestLimitsSayNoAndWhatToDo(t *testing.T) {
	file, _ := OpenFile("")
	st := newStore(t)
	r := newRegistry(t, file, st)
	edit(t, r, create("anna", Wish{
		Password: text("rose"), Connections: number(2), InFlight: number(3), Bytes: number(1000), Operations: number(10),
	}))
	a := r.Account("anna")
	var exceeded *Exceeded
	for range 2 {
		if err := a.Connect(); err != nil {
			t.Error(err)
		}
	}
	if !errors.As(a.Connect(), &exceeded) {
		t.Error("two connections are allowed, and a third, too")
	}
	a.Disconnect()
	if err := a.Connect(); err != nil {
		t.Error("a connection that was closed counts:", err)
	}
	if a.Wait(3) != nil || !errors.As(a.Wait(1), &exceeded) {
		t.Error("three operations may wait, and no fourth")
	}
	if err := a.Room(); err != nil {
		t.Error(err)
	}
	put(t, st, a.Tenant().First, "k", fmt.Sprintf("%01000d", 1))
	if !errors.As(a.Room(), &exceeded) {
		t.Error("there is room beyond the limit")
	}
	if u := r.Usage()[0]; u.Refused != 3 || u.Connections != 2 || u.Keys != 1 || u.Bytes < 1000 {
		t.Errorf("the account says %+v", u)
	}
}

func TestOperationsComeAtTheRateOfTheLimit(t *testing.T) {
	for _, limit := range []int64{1, 10, 1000, 50_000, 1_000_000} {
		file, _ := OpenFile("")
		r := newRegistry(t, file, newStore(t))
		edit(t, r, create("anna", Wish{Password: text("rose"), Operations: number(limit)}))
		purses := []Purse{r.Account("anna").Purse(), r.Account("anna").Purse()}
		passed := int64(0)
		now := int64(7e9)
		seconds := min(10, max(100_000/limit, 1))
		for end := now + seconds*second; now < end; now += max(second/limit/3, 1) {
			for i := range purses {
				if purses[i].Spend(1, now) == nil {
					passed++
				}
			}
		}
		least, most := seconds*limit, seconds*limit+limit/10+2+10*maxChunk
		if passed < least || passed > most {
			t.Errorf("at a limit of %d a second %d operations passed in %d seconds, want %d to %d", limit, passed, seconds, least, most)
		}
	}
}

func TestABookThatIsDamagedIsNotTakenForAnEmptyOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tenants.json")
	if err := os.WriteFile(path, []byte(`{"next": 655`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFile(path); err == nil {
		t.Error("it was opened")
	}
}

func TestNamesAndLimitsThatMakeNoSenseAreRefused(t *testing.T) {
	var c Catalog
	few := 0
	for what, err := range map[string]error{
		"the operator's name":  c.Create("default", Wish{Password: text("x")}, at(1)),
		"an empty name":        c.Create("", Wish{Password: text("x")}, at(1)),
		"a name with a space":  c.Create("a b", Wish{Password: text("x")}, at(1)),
		"no password":          c.Create("a", Wish{}, at(1)),
		"an empty password":    c.Create("a", Wish{Password: text("")}, at(1)),
		"no databases":         c.Create("a", Wish{Password: text("x"), Databases: &few}, at(1)),
		"less than nothing":    c.Create("a", Wish{Password: text("x"), Bytes: number(-1)}, at(1)),
		"a change of nobody":   c.Change("a", Wish{}),
		"a deletion of nobody": c.Delete("a"),
	} {
		if err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
	if c.Next != 0 && len(c.Tenants) > 0 {
		t.Error("what was refused left something behind")
	}
}

func TestAnIdleTenantCostsLittle(t *testing.T) {
	file, _ := OpenFile("")
	r := newRegistry(t, file, newStore(t))
	const many = 2000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	edit(t, r, func(c *Catalog) error {
		for n := range many {
			if err := c.Create(fmt.Sprint("tenant", n), Wish{Password: text("x")}, at(1)); err != nil {
				return err
			}
		}
		return nil
	})
	runtime.GC()
	runtime.ReadMemStats(&after)
	if each := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / many; each > 8<<10 {
		t.Errorf("an idle tenant takes %d bytes", each)
	} else {
		t.Logf("an idle tenant takes %d bytes", each)
	}
	if n := len(r.Usage()); n != many {
		t.Errorf("%d tenants", n)
	}
}

// Who knows another's name, number and client ids cannot choose an id that comes to the same: it depends on a key.
func TestAClientsIDInTheStoreDependsOnWhatNobodyKnows(t *testing.T) {
	var c Catalog
	for _, name := range []string{"anna", "bert"} {
		if err := c.Create(name, Wish{Password: text(name)}, at(1)); err != nil {
			t.Fatal(err)
		}
	}
	anna, bert := c.Tenants["anna"], c.Tenants["bert"]
	twin := anna
	twin.Key = bert.Key
	if len(anna.Key) < 16 || anna.ClientID(1) == bert.ClientID(1) || anna.ClientID(1) == twin.ClientID(1) || anna.ClientID(1) == anna.ClientID(2) {
		t.Error("ids of clients do not depend on tenant, key and what was chosen")
	}
	if err := c.Change("anna", Wish{Password: text("another")}); err != nil {
		t.Fatal(err)
	}
	if now := c.Tenants["anna"]; now.ClientID(7) != anna.ClientID(7) {
		t.Error("another password makes other clients of the same ones")
	}
	old := anna
	old.Key = nil
	c.put(old)
	if err := c.Change("anna", Wish{Password: text("another")}); err != nil {
		t.Fatal(err)
	}
	if now := c.Tenants["anna"]; now.ClientID(7) != old.ClientID(7) {
		t.Error("another password makes other clients of those of a tenant that had no key")
	}
}

// Nobody finds out by the time that an answer takes whether there is a tenant of some name: the same is done.
func TestANameThatNobodyHasTakesTheSameWork(t *testing.T) {
	file, err := OpenFile("")
	if err != nil {
		t.Fatal(err)
	}
	r := newRegistry(t, file, newStore(t))
	edit(t, r, create("anna", Wish{Password: text("rose")}))
	work := func(name, password string) (hashed int64) {
		was := secretsHashed.Load()
		if _, ok := r.Authenticate([]byte(name), []byte(password)); ok != (name == "anna" && password == "rose") {
			t.Errorf("%s with password %s: %v", name, password, ok)
		}
		return secretsHashed.Load() - was
	}
	for _, who := range [][2]string{{"anna", "rose"}, {"anna", "tulip"}, {"nobody", "rose"}, {"", ""}} {
		if n := work(who[0], who[1]); n != 1 {
			t.Errorf("%q hashes %d passwords, want 1", who, n)
		}
	}
	for _, name := range []string{"anna", "nobody"} {
		if n := work(name, strings.Repeat("x", MaxPasswordBytes+1)); n != 0 {
			t.Errorf("a password of %s that is too long is hashed", name)
		}
	}
}
