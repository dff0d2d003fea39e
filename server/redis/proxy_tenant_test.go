package redis_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/server/redis"
	"github.com/ostrodb/ostro/tenant"
)

// newTenantProxies are proxies whose nodes all know some tenants.
func newTenantProxies(t testing.TB, count int, tenants ...string) *town {
	t.Helper()
	tw := newTown(t, count, redis.Config{Proxy: true, Loops: 2, RequirePass: operatorPassword})
	for node := range tw.nodes {
		operator := tw.as(node, tenant.Operator)
		for _, line := range tenants {
			says(t, operator, "OK", strings.Fields("tenant create "+line)...)
		}
	}
	return tw
}

func (tw *town) as(node int, name string) *rawClient { return as(tw.t, tw.nodes[node].addr, name) }

func TestAProxySpeaksForEachTenantAsThatTenant(t *testing.T) {
	tw := newTenantProxies(t, 3, "anna password anna", "bert password bert connections 1")
	names := []string{"anna", "bert", tenant.Operator}
	clients := map[string]*rawClient{}
	for i, name := range names {
		clients[name] = tw.as(i, name)
	}
	for i := range 60 {
		for name, c := range clients {
			says(t, c, "OK", "set", fmt.Sprint("key:", i), fmt.Sprint(name, i))
		}
	}
	for name, c := range clients {
		for i := range 60 {
			says(t, c, fmt.Sprint(name, i), "get", fmt.Sprint("key:", i))
		}
		key := tw.keyOf((slices.Index(names, name)+1)%3, 0)
		converse(t, c, [][2]string{
			{"DBSIZE", ":60"},
			{"MSET a 1 b 2 c " + name, "+OK"},
			{"MGET a b c d", fmt.Sprintf("*4 $1 1 $1 2 $%d %s $-1", len(name), name)},
			{"DEL a b c d", ":3"},
			{"WATCH " + key, "+OK"},
			{"MULTI", "+OK"},
			{"STRLEN " + key, "+QUEUED"},
			{"SET {" + key + "}x y", "+QUEUED"},
			{"EXEC", fmt.Sprintf("*2 :%d +OK", len(ask(t, c, "get", key)))},
			{"DEL {" + key + "}x", ":1"},
		}...)
		if n := len(mustDo(t, c, "keys", "*").items); n != 60 {
			t.Errorf("%s lists %d keys", name, n)
		}
	}
	says(t, clients["anna"], "OK", "flushall")
	for name, want := range map[string]string{"anna": ":0\r\n", "bert": ":60\r\n", tenant.Operator: ":60\r\n"} {
		if r := mustDo(t, clients[name], "dbsize"); r.raw != want {
			t.Errorf("after anna's FLUSHALL %s has %q keys", name, r.raw)
		}
	}
	third := tw.dial(1)
	says(t, third, "QUOTA tenant bert has reached its limit of 1 connections", "auth", "bert", "bert")
}

// Tenants whose commands take the same ways at the same time are answered as by servers of their own.
func TestTenantsOfAProxyAreAnsweredAsByServersOfTheirOwn(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	tw := newTenantProxies(t, 3, "anna password anna", "bert password bert")
	for i, name := range []string{"anna", "bert", tenant.Operator} {
		alone, r := dialRaw(t, startOstro(t, redis.Config{})), rand.New(rand.NewPCG(seed, uint64(i)))
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			through := tw.as(r.IntN(3), name)
			for range 60 {
				commands := randomPipeline(r, 1+r.IntN(60))
				want, got := converseAll(t, alone, commands), converseAll(t, through, commands)
				for i := range commands {
					if want[i] != got[i] {
						t.Fatalf("%q is answered %q, alone %q\nin %q", commands[i], got[i], want[i], commands)
					}
				}
			}
		})
	}
}

func TestNoCommandCrossesTheWallByAProxy(t *testing.T) {
	tw := newTenantProxies(t, 3, "anna password anna", "mallory password mallory")
	w := wall{databases: 1, owners: map[string]*rawClient{"anna": tw.as(0, "anna"), "operator": tw.as(1, tenant.Operator)}}
	w.build(t)
	w.attack(t, 20, tw.as(0, "mallory"), tw.as(1, "mallory"), tw.as(2, "mallory"))
	w.stands(t)
}

// A node takes another's word for who a tenant is only if both mean the same one.
func TestATenantThatTheOwnerDoesNotKnowGetsNobodysData(t *testing.T) {
	tw := newTown(t, 2, redis.Config{Proxy: true, RequirePass: operatorPassword, ClusterWait: 100 * time.Millisecond})
	key := tw.keyOf(1, 0)
	here, there := tw.as(0, tenant.Operator), tw.as(1, tenant.Operator)
	says(t, here, "OK", "tenant", "create", "anna", "password", "anna")
	anna := tw.as(0, "anna")
	says(t, anna, "CLUSTERDOWN", "get", key) // It has not heard of her yet.
	says(t, there, "OK", "tenant", "create", "first", "password", "first")
	says(t, there, "OK", "tenant", "create", "anna", "password", "anna") // Another one of her name.
	says(t, tw.as(1, "anna"), "OK", "set", key, "another's")
	says(t, tw.as(1, "first"), "OK", "set", key, "another's")
	says(t, anna, "CLUSTERDOWN", "get", key)
	says(t, anna, "CLUSTERDOWN", "set", key, "mine")
	says(t, tw.as(1, "anna"), "another's", "get", key)
	says(t, anna, "NOPERM", "cluster", "forwarded", "first", "65536")
	says(t, there, "TRYAGAIN", "cluster", "forwarded", "nobody", "65536")
	if _, err := there.do("get", key); !ended(err) {
		t.Errorf("a link for nobody goes on: %v", err)
	}
}

func TestADeletedTenantIsCutOffBehindAProxy(t *testing.T) {
	tw := newTenantProxies(t, 2, "anna password anna")
	key := tw.keyOf(1, 0)
	anna := tw.as(0, "anna")
	says(t, anna, "OK", "set", key, "1")
	for _, step := range []string{"delete anna", "create anna password anna"} {
		says(t, tw.as(1, tenant.Operator), "OK", strings.Fields("tenant "+step)...)
	}
	// This node still believes in the one that is gone.
	if r, err := anna.do("get", key); err == nil && (r.kind != '-' || r.text == "1") {
		t.Errorf("she is answered %q", r.raw)
	}
}

func TestWhoWaitsForOtherNodesIsInFlight(t *testing.T) {
	tw := newTenantProxies(t, 2, "anna password anna inflight 1", "bert password bert")
	key := tw.keyOf(1, 0)
	first, second, bert := tw.as(0, "anna"), tw.as(0, "anna"), tw.as(0, "bert")
	for _, c := range []*rawClient{first, second, bert} {
		says(t, c, "OK", "set", key, "0")
	}
	releases := []func(){tw.nodes[1].srv.HoldLoop(0), tw.nodes[1].srv.HoldLoop(1)}
	must(t, first.sendAll([][]string{{"incr", key}, {"incr", key}}))
	await.True(t, "it is under way", func() bool { return tw.nodes[0].srv.Flying() == 1 })
	says(t, second, "QUOTA tenant anna has reached its limit of 1 operations that wait", "get", key)
	says(t, second, "QUOTA tenant anna has reached its limit of 1 operations that wait", "watch", key)
	says(t, second, "", "get", tw.keyOf(0, 0))
	must(t, bert.send("incr", key))
	for _, release := range releases {
		release()
	}
	for _, c := range []*rawClient{first, first, bert} {
		if r, err := c.receive(); err != nil || r.kind != ':' {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	if got := ask(t, second, "get", key); got != "2" {
		t.Errorf("after two steps it is %s", got)
	}
	must(t, first.sendAll([][]string{{"incr", key}}))
	must(t, first.conn.Close()) // What a client that leaves has counted is given back.
	await.True(t, "others may wait again", func() bool {
		r := mustDo(t, second, "get", key)
		return r.kind == '$'
	})
}

func TestLinksOfTenantsThatAreIdleAreClosed(t *testing.T) {
	tw := newTenantProxies(t, 2, "anna password anna")
	key := tw.keyOf(1, 0)
	anna, operator := tw.as(0, "anna"), tw.as(0, tenant.Operator)
	for _, c := range []*rawClient{anna, operator} {
		says(t, c, "OK", "set", key, "one")
	}
	srv := tw.nodes[0].srv
	if n := srv.LinksTo("n2"); n != 2 {
		t.Fatalf("%d links", n)
	}
	srv.AgeLinks(60_000)
	await.True(t, "the tenant's link is closed", func() bool {
		says(t, operator, "one", "get", key)
		return srv.LinksTo("n2") == 1
	})
	says(t, anna, "one", "get", key)
}

// What would change the connection is kept from links that others use, too.
func TestATransactionElsewhereDoesNotChangeTheLink(t *testing.T) {
	tw := newProxies(t, 2)
	key := tw.keyOf(1, 0)
	c := tw.dial(0)
	for _, line := range []string{"client reply off", "hello 3", "auth x y"} {
		says(t, c, "OK", "multi")
		says(t, c, "QUEUED", "set", key, "1")
		says(t, c, "QUEUED", strings.Fields(line)...)
		says(t, c, "EXECABORT AUTH, HELLO and CLIENT cannot stand", "exec")
		says(t, c, "", "get", key)
	}
}

// A slot is on its way from one node to another, key by key: calls go where their key is, over proxies and
// by clients that follow ASK, for the operator and for tenants, and none fails.
func TestCallsFollowTheirKeysThroughASlotOnItsWay(t *testing.T) {
	tw := newTenantProxies(t, 3, "anna password anna", "bert password bert")
	here := tw.keyOf(0, 0)
	gone := sibling(here)
	names := []string{"anna", "bert", tenant.Operator}
	for node := range tw.nodes {
		for _, name := range names {
			loadCalls(t, tw.as(node, name))
		}
	}
	for _, name := range names {
		mustDo(t, tw.as(0, name), "FCALL", "count", "1", here, "1")
	}
	tw.publish(func() {
		tw.nodes[0].state.Exporting = []redis.Migration{{Ranges: slotRanges(here), Node: "n2"}}
		tw.nodes[1].state.Importing = []redis.Migration{{Ranges: slotRanges(here), Node: "n1"}}
	})
	for node := range tw.nodes {
		for _, name := range names {
			c := tw.as(node, name)
			for i, rounds := range []string{"1", "60000"} { // Short ones run at once, long ones later.
				if n := counter(t, mustDo(t, c, "FCALL", "count", "1", here, rounds)); n != uint64(2+2*node+i) {
					t.Errorf("%s at node %d: what is still here counts %d", name, node, n)
				}
				if n := counter(t, mustDo(t, c, "FCALL", "count", "1", gone, rounds)); n != uint64(1+2*node+i) {
					t.Errorf("%s at node %d: what is there already counts %d", name, node, n)
				}
			}
			if r := mustDo(t, c, "FCALL_RO", "total", "1", gone); counter(t, r) != uint64(2+2*node) {
				t.Errorf("%s at node %d reads %q", name, node, r.raw)
			}
		}
	}
	if n, _ := tw.nodes[1].st.Count(0); n != 1 {
		t.Errorf("the importing node has %d keys of the operator's", n)
	}
	plain := tw.as(1, "anna") // As a client does that was sent here by ASK.
	says(t, plain, "OK", "asking")
	if n := counter(t, mustDo(t, plain, "FCALL", "count", "1", gone, "60000")); n != 7 {
		t.Errorf("after ASKING it counts %d", n)
	}
}

// Tenants call functions through proxies while slots change hands: each call counts once.
func TestCallsThroughAProxyCountOnceWhileOwnershipChanges(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	tw := newTenantProxies(t, 3, "anna password anna", "bert password bert")
	const counters = 8
	type caller struct {
		c    *rawClient
		made [counters]uint64
	}
	callers := map[string]*caller{}
	for i, name := range []string{"anna", "bert"} {
		for node := range tw.nodes {
			loadCalls(t, tw.as(node, name))
		}
		callers[name] = &caller{c: tw.as(i, name)}
	}
	for range 30 {
		for name, k := range callers {
			var commands [][]string
			for range 20 {
				n := r.IntN(counters)
				k.made[n]++
				commands = append(commands, []string{"FCALL", "count", "1", "counter:" + strconv.Itoa(n), []string{"1", "60000"}[b2i(r.IntN(10) == 0)]})
			}
			must(t, k.c.sendAll(commands))
			key := "counter:" + strconv.Itoa(r.IntN(counters))
			from := tw.owner(key)
			tw.move(slotRanges(key), from, (from+1+r.IntN(2))%3)
			for i := range commands {
				if got, err := k.c.receive(); err != nil || got.kind != '$' {
					t.Fatalf("%s: %q: %+v, %v", name, commands[i], got, err)
				}
			}
		}
	}
	for name, k := range callers {
		for n, want := range k.made {
			r := mustDo(t, k.c, "FCALL_RO", "total", "1", "counter:"+strconv.Itoa(n))
			if got := counter(t, r); got != want {
				t.Errorf("%s: counter %d is %d after %d calls", name, n, got, want)
			}
		}
	}
}
