package server_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/server"
	"github.com/ostrodb/ostro/tenant/extension"
	"github.com/ostrodb/ostro/tenant/extension/local"
	"github.com/ostrodb/ostro/tenant/library"
	"github.com/ostrodb/ostro/tenant/library/librarytest"
)

// answers is what a function of a tenant answers on a node; "" while it is not there.
func answers(t *testing.T, n *server.Node, tenant, function string) string {
	t.Helper()
	s := n.Shelf(tenant)
	if s == nil {
		return ""
	}
	f := s.Find([]byte(function))
	if f == nil {
		return ""
	}
	ready := make(chan error, 1)
	f.Prepare(func(err error) { ready <- err })
	if err := <-ready; err != nil {
		return ""
	}
	pool, err := f.Pool()
	if err != nil {
		return ""
	}
	r, _ := pool.Call(&extension.Invocation{Function: function, Store: local.New(time.Now)})
	return string(r.Response)
}

func loadable(name, text string, functions ...string) string {
	return "#!wasm name=" + name + "\n" + string(librarytest.Module(text, functions...))
}

func (w *world) login(node, user, password string) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: w.nodes[node].Addr(), Username: user, Password: password, ReadTimeout: 50 * time.Second})
	w.t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestFunctionsInstalledAtOneNodeAreThereAtAll(t *testing.T) {
	w := newWorld(t)
	w.password = "operator"
	w.start("a", "b", "c")
	ctx := patient(t)
	operator := w.login("a", "", "operator")
	w.must(operator.Do(ctx, "tenant", "create", "anna", "password", "anna").Err())
	w.must(operator.Do(ctx, "tenant", "create", "bert", "password", "bert").Err())
	everywhere := func(tenant, function, want string) {
		t.Helper()
		for name := range w.nodes {
			await.True(t, fmt.Sprintf("%s of %s answers %q at %s", function, tenant, want, name), func() bool {
				return answers(t, w.nodes[name], tenant, function) == want
			})
		}
	}
	anna := w.login("a", "anna", "anna")
	w.must(anna.FunctionLoad(ctx, loadable("greeter", "one", "hello")).Err())
	everywhere("anna", "hello", "one")
	if answers(t, w.nodes["a"], "bert", "hello") != "" || answers(t, w.nodes["b"], "default", "hello") != "" {
		t.Error("others have it, too")
	}

	large := strings.Repeat("x", 1_500_000) // In several pieces.
	await.True(t, "b knows bert, who was created at a", func() bool { return w.nodes["b"].Shelf("bert") != nil })
	w.must(w.login("b", "bert", "bert").FunctionLoad(ctx, loadable("large", large, "big")).Err())
	everywhere("bert", "big", large)

	w.drop("c")
	w.must(anna.FunctionLoadReplace(ctx, loadable("greeter", "two", "hello")).Err())
	everywhere("anna", "hello", "two")
	w.start("c")
	everywhere("anna", "hello", "two")
	at := w.login("c", "anna", "anna")
	list, err := at.FunctionList(ctx, redis.FunctionListQuery{WithCode: true}).Result()
	if err != nil || len(list) != 1 || list[0].Code != loadable("greeter", "two", "hello") {
		t.Errorf("a node that was away has %+v, %v", list, err)
	}
	if err := at.FunctionLoad(ctx, loadable("greeter", "two", "hello")).Err(); err != nil {
		t.Errorf("to be told by each node's client what is there already: %v", err)
	}
	if err := at.FunctionLoad(ctx, loadable("greeter", "three", "hello")).Err(); err == nil {
		t.Error("another one of the same name is taken without REPLACE")
	}

	archive := w.meta.Archive("functions")
	kept := func(text, function string) bool {
		_, err := archive.Blob(ctx, library.SumOf(librarytest.Module(text, function)).String())
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return err == nil
	}
	if kept("one", "hello") || !kept("two", "hello") || !kept(large, "big") {
		t.Errorf("code in etcd: replaced %v, current %v, large %v", kept("one", "hello"), kept("two", "hello"), kept(large, "big"))
	}
	w.must(at.FunctionDelete(ctx, "greeter").Err())
	everywhere("anna", "hello", "")
	w.must(operator.Do(ctx, "tenant", "delete", "bert").Err())
	await.True(t, "a deleted tenant's code is gone", func() bool { return !kept(large, "big") && !kept("two", "hello") })
	leaves, _, err := archive.Read(ctx)
	if err != nil || len(leaves) != 0 {
		t.Errorf("pages of nobody: %+v, %v", leaves, err)
	}
}

// setCodeBytes has etcd say how much code the cluster has.
func (w *world) setCodeBytes(n int) {
	w.t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{etcd().Addr()}})
	w.must(err)
	defer c.Close()
	key := "/ostro/" + w.url[strings.LastIndex(w.url, "/")+1:] + "/~functions/total"
	_, err = c.Put(patient(w.t), key, fmt.Sprint(n))
	w.must(err)
}

func TestWhoHasLittleCodeCanInstallSomeWhenOthersHaveNearlyAllThatAClusterKeeps(t *testing.T) {
	w := newWorld(t)
	w.password = "operator"
	w.start("a", "b", "c")
	ctx := patient(t)
	w.must(w.login("a", "", "operator").Do(ctx, "tenant", "create", "anna", "password", "anna").Err())
	w.setCodeBytes(512<<20 - 64<<10) // The next one has 4 KiB.
	anna := w.login("a", "anna", "anna")
	refused := func(name, help string) {
		t.Helper()
		err := anna.FunctionLoad(ctx, loadable(name, strings.Repeat(name, 3000), name)).Err()
		if err == nil || !strings.Contains(err.Error(), help) {
			t.Errorf("want an error that says %q, got %v", help, err)
		}
	}
	refused("xx", "install less, or ask the operator to make room")
	w.must(anna.FunctionLoad(ctx, loadable("small", strings.Repeat("x", 2000), "small")).Err())
	refused("y", "delete some of yours, or install less")
	w.must(anna.FunctionDelete(ctx, "small").Err())
	w.must(anna.FunctionLoad(ctx, loadable("y", strings.Repeat("y", 3000), "y")).Err())
}
