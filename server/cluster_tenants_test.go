package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ostrodb/ostro/client"
	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/internal/await"
)

// tenantClient is an ordinary client of Redis Cluster that logs in.
func (w *world) tenantClient(user, password string, names ...string) *redis.ClusterClient {
	var addrs []string
	for _, n := range names {
		addrs = append(addrs, w.nodes[n].Addr())
	}
	c := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: addrs, Username: user, Password: password, MaxRedirects: 30, MaxRetries: 30, ReadTimeout: 20 * time.Second,
	})
	w.t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestTenantsOfAClusterKeepTheirDataThroughDeathsAndMoves(t *testing.T) {
	w := newWorld(t)
	w.password = "operator"
	w.start("a", "b", "c")
	ctx := patient(t)
	operator := w.login("a", "", "operator")
	for _, name := range []string{"anna", "bert"} {
		w.must(operator.Do(ctx, "tenant", "create", name, "password", name).Err())
	}
	known := func(node, name string) bool {
		c := redis.NewClient(&redis.Options{Addr: w.nodes[node].Addr(), Username: name, Password: name, ReadTimeout: 50 * time.Second})
		defer c.Close()
		return c.Ping(ctx).Err() == nil
	}
	for _, node := range []string{"a", "b", "c"} {
		await.True(t, "all nodes know the tenants", func() bool { return known(node, "anna") && known(node, "bert") })
	}
	clients := map[string]*redis.ClusterClient{}
	for _, name := range []string{"anna", "bert"} {
		clients[name] = w.tenantClient(name, name, "a", "b", "c")
		for i := range 300 {
			w.must(clients[name].Set(ctx, key(i), fmt.Sprint(name, i), 0).Err())
		}
	}
	check := func(when string) {
		t.Helper()
		for name, c := range clients {
			for i := range 300 {
				if got, err := c.Get(patient(t), key(i)).Result(); err != nil || got != fmt.Sprint(name, i) {
					t.Fatalf("%s: %s of %s is %q, %v", when, key(i), name, got, err)
				}
			}
		}
	}
	check("at first")
	all := w.tenantClient("", "operator", "a", "b", "c")
	if got, err := all.Get(ctx, key(1)).Result(); err != redis.Nil {
		t.Errorf("the operator sees %q, %v", got, err)
	}
	native, err := client.Dial(ctx, "ostro://anna:anna@"+w.cache.Snapshot().Nodes["b"].Address, client.Options{SessionTimeout: testPatience})
	w.must(err)
	t.Cleanup(func() { _ = native.Close() })
	for i := range 300 {
		if r, err := native.Get(ctx, 0, []byte(key(i))).Wait(); err != nil || string(r.Value) != fmt.Sprint("anna", i) {
			t.Fatalf("natively %s is %q, %v", key(i), r.Value, err)
		}
	}
	w.drop("c")
	w.await("others in its place", func(s *meta.Snapshot) bool { return len(s.Recoveries) == 0 && len(s.Map.Owners()) == 2 })
	for name := range clients {
		clients[name] = w.tenantClient(name, name, "a", "b")
	}
	check("after a death")
	w.must(operator.Do(ctx, "tenant", "delete", "bert").Err())
	await.True(t, "nobody knows a deleted tenant", func() bool { return !known("a", "bert") && !known("b", "bert") })
	delete(clients, "bert")
	check("after a deletion")
	if err := operator.Do(ctx, "tenant", "create", "bert", "password", "bert").Err(); err != nil && !strings.Contains(err.Error(), "already") {
		t.Fatal(err)
	}
	await.True(t, "the new one is known", func() bool { return known("a", "bert") && known("b", "bert") })
	again := w.tenantClient("bert", "bert", "a", "b")
	if got, err := again.Get(ctx, key(1)).Result(); err != redis.Nil {
		t.Errorf("another tenant of the same name has %q, %v", got, err)
	}
}
