package redis_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/hlog/hlogtest"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/server/redis"
)

func newProxies(t testing.TB, count int) *town {
	return newTown(t, count, redis.Config{Proxy: true, Loops: 2})
}

func TestAProxyServesClientsThatKnowOneServerOnly(t *testing.T) {
	tw := newProxies(t, 3)
	for _, proto := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", proto), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			c := goredis.NewClient(&goredis.Options{Addr: tw.nodes[proto%3].addr, Protocol: proto, ReadTimeout: patience})
			defer c.Close()
			const keys = 300
			var pairs []any
			var names []string
			for i := range keys {
				names = append(names, "key:"+strconv.Itoa(i))
				pairs = append(pairs, names[i], i)
			}
			must(t, c.FlushAll(ctx).Err())
			must(t, c.MSet(ctx, pairs...).Err())
			for i, v := range c.MGet(ctx, append(names, "nosuch")...).Val() {
				if i < keys && v != strconv.Itoa(i) || i == keys && v != nil {
					t.Fatalf("MGET shows %v as number %d", v, i)
				}
			}
			cmds, err := c.Pipelined(ctx, func(p goredis.Pipeliner) error {
				for _, name := range names {
					p.Incr(ctx, name)
				}
				return nil
			})
			must(t, err)
			for i, cmd := range cmds {
				if n := cmd.(*goredis.IntCmd).Val(); n != int64(i+1) {
					t.Fatalf("number %d became %d", i, n)
				}
			}
			if n := c.DBSize(ctx).Val(); n != keys {
				t.Errorf("DBSIZE: %d", n)
			}
			if all := c.Keys(ctx, "key:*").Val(); len(all) != keys {
				t.Errorf("KEYS: %d", len(all))
			}
			seen := map[string]bool{}
			it := c.Scan(ctx, 0, "", 20).Iterator()
			for it.Next(ctx) {
				seen[it.Val()] = true
			}
			if must(t, it.Err()); len(seen) != keys {
				t.Errorf("SCAN: %d keys", len(seen))
			}
			if key := c.RandomKey(ctx).Val(); !seen[key] {
				t.Errorf("RANDOMKEY: %q", key)
			}
			if n := c.Exists(ctx, append(names, "nosuch")...).Val(); n != keys {
				t.Errorf("EXISTS: %d", n)
			}
			if n := c.Del(ctx, names[:100]...).Val(); n != 100 {
				t.Errorf("DEL: %d", n)
			}
			if n := c.Unlink(ctx, names...).Val(); n != keys-100 {
				t.Errorf("UNLINK: %d", n)
			}
			if err := c.MSetNX(ctx, pairs...).Err(); err == nil || !strings.HasPrefix(err.Error(), "CROSSSLOT") {
				t.Errorf("MSETNX: %v", err)
			}
		})
	}
}

func TestAProxyForwardsTransactionsWhole(t *testing.T) {
	tw := newProxies(t, 3)
	for node := range 3 {
		key := tw.keyOf(node, 0)
		t.Run("of node "+strconv.Itoa(node), func(t *testing.T) {
			c, other := tw.dial(0), tw.dial(1)
			check := func(want string, args ...string) {
				t.Helper()
				r, err := c.do(args...)
				if err != nil || flat(r) != want {
					t.Errorf("%q answers %q, %v; want %q", args, flat(r), err, want)
				}
			}
			check("OK", "multi")
			check("QUEUED", "set", key, "1")
			check("QUEUED", "incr", sibling(key))
			check("QUEUED", "get", key)
			check("[OK 1 1]", "exec")
			check("ERR EXEC without MULTI", "exec")

			check("OK", "watch", key, sibling(key))
			check("1", "get", key)
			check("OK", "multi")
			check("QUEUED", "append", key, "x")
			check("[2]", "exec")

			check("OK", "watch", key)
			ask(t, other, "set", key, "changed")
			check("OK", "multi")
			check("QUEUED", "append", key, "y")
			check("null", "exec")

			check("OK", "watch", key)
			ask(t, other, "set", key, "changed")
			check("OK", "unwatch")
			check("OK", "multi")
			check("QUEUED", "append", key, "y")
			check("[8]", "exec")

			check("OK", "watch", key)
			check("OK", "multi")
			check("QUEUED", "append", key, "z")
			check("OK", "discard")
			check("changedy", "get", key)

			check("OK", "watch", key)
			check("CROSSSLOT Keys in request don't hash to the same slot", "watch", tw.keyOf((node+1)%3, 0))
			check("OK", "multi")
			check("QUEUED", "incr", tw.keyOf((node+1)%3, 1))
			check("CROSSSLOT Keys in request don't hash to the same slot", "exec")
			check("OK", "multi")
			check("QUEUED", "incr", key)
			check("QUEUED", "get", "nosuch{"+key+"}")
			check("[ERR value is not an integer or out of range null]", "exec")
			check("OK", "multi")
			check("QUEUED", "incr", tw.keyOf(0, 1))
			check("QUEUED", "incr", tw.keyOf(1, 1))
			check("CROSSSLOT Keys in request don't hash to the same slot", "exec")
		})
	}
}

// flat shows a reply on one line.
func flat(r *reply) string {
	switch {
	case r == nil:
		return "nothing"
	case r.null:
		return "null"
	case r.kind != '*':
		return r.text
	}
	var items []string
	for _, item := range r.items {
		items = append(items, flat(item))
	}
	return "[" + strings.Join(items, " ") + "]"
}

func TestAProxysWatchDoesNotOvertakeWhatItsClientWroteBefore(t *testing.T) {
	tw := newProxies(t, 2)
	c, key := tw.dial(0), tw.keyOf(1, 0)
	for n := range 50 {
		var commands [][]string
		for i := range 100 {
			commands = append(commands, []string{"set", key, strconv.Itoa(n + i)})
		}
		commands = append(commands, [][]string{{"watch", key}, {"multi"}, {"incr", key}, {"exec"}}...)
		replies := converseAll(t, c, commands)
		if got, want := replies[len(replies)-1], fmt.Sprintf("*1\r\n:%d\r\n", n+100); got != want {
			t.Fatalf("nobody else writes, and EXEC is answered %q; want %q", got, want)
		}
	}
}

// Random commands through proxies are answered as by one server alone.
func TestAProxyAnswersAsOneServerDoes(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	tw := newProxies(t, 3)
	for _, proto := range []string{"2", "3"} {
		alone := dialRaw(t, startOstro(t, redis.Config{}))
		through := tw.dial(r.IntN(3))
		for _, c := range []*rawClient{alone, through} {
			if _, err := c.do("hello", proto); err != nil {
				t.Fatal(err)
			}
			ask(t, c, "flushall")
		}
		for range 100 {
			commands := randomPipeline(r, 1+r.IntN(60))
			want, got := converseAll(t, alone, commands), converseAll(t, through, commands)
			for i := range commands {
				if want[i] != got[i] {
					t.Fatalf("%q is answered %q, alone %q\nin %q", commands[i], got[i], want[i], commands)
				}
			}
		}
	}
}

func randomPipeline(r *rand.Rand, n int) [][]string {
	key := func() string { return "k" + strconv.Itoa(r.IntN(40)) }
	var commands [][]string
	for range n {
		value := strconv.Itoa(r.IntN(1000))
		choices := [][]string{
			{"get", key()},
			{"set", key(), value},
			{"set", key(), value, "nx", "get"},
			{"incr", key()},
			{"append", key(), value},
			{"mget", key(), key(), key()},
			{"mset", key(), value, key(), value},
			{"del", key(), key()},
			{"exists", key(), key()},
			{"strlen", key()},
			{"getrange", key(), "0", "3"},
			{"setbit", key(), "7", "1"},
			{"ttl", key()},
			{"ping"},
			{"echo", value},
			{"nosuch"},
			{"get"},
			{"mset", key()},
			{"dbsize"},
			{"set", key(), strings.Repeat(value, 300)},
			{"type", key()},
			{"select", "0"},
		}
		switch c := choices[r.IntN(len(choices))]; {
		case r.IntN(40) == 0:
			k := key()
			// It is there when it is watched: else another's deletion may have EXEC fail, too.
			commands = append(commands, []string{"append", k, value}, []string{"watch", k, k}, []string{"get", k}, []string{"multi"}, []string{"watch", key()},
				[]string{"set", k, value}, []string{[]string{"exec", "discard"}[r.IntN(2)]}, []string{"unwatch"})
		case r.IntN(20) == 0:
			k := key()
			commands = append(commands, []string{"multi"}, []string{"incr", k}, []string{"get", k}, []string{"exec"})
		default:
			commands = append(commands, c)
		}
	}
	return commands
}

// converseAll sends a pipeline and returns the replies as they came.
func converseAll(t *testing.T, c *rawClient, commands [][]string) (replies []string) {
	t.Helper()
	must(t, c.sendAll(commands))
	for range commands {
		r, err := c.receive()
		must(t, err)
		replies = append(replies, r.raw)
	}
	return replies
}

// Clients of proxies count while slots change hands: nothing is lost, nothing
// happens twice, and each client sees its own pipeline in order.
func TestAProxyLosesNothingWhileOwnershipChanges(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	tw := newProxies(t, 3)
	const counters, moves, burst = 30, 25, 25
	var stop atomic.Bool
	var wg sync.WaitGroup
	var rounds atomic.Int64
	var counts [counters]atomic.Int64
	for w := range 4 {
		own := rand.New(rand.NewPCG(seed, uint64(w+1)))
		c := tw.dial(w % 3)
		wg.Go(func() {
			for n := 0; !stop.Load(); n++ {
				mark := "{counter:" + strconv.Itoa(own.IntN(counters)) + "}mark" + strconv.Itoa(w)
				var commands [][]string
				for i := range burst {
					counter := own.IntN(counters)
					counts[counter].Add(1)
					commands = append(commands, []string{"incr", "counter:" + strconv.Itoa(counter)}, []string{"set", mark, strconv.Itoa(n*burst + i)})
				}
				commands = append(commands, []string{"get", mark})
				if err := c.sendAll(commands); err != nil {
					t.Error(err)
					return
				}
				for i := range commands {
					got, err := c.receive()
					if err != nil || got.kind == '-' {
						t.Errorf("%q: %+v, %v", commands[i], got, err)
						return
					}
					if i == len(commands)-1 && got.text != strconv.Itoa(n*burst+burst-1) {
						t.Errorf("the last of %d writes was %s", n*burst+burst-1, got.text)
					}
				}
				rounds.Add(1)
			}
		})
	}
	for range moves {
		key := "counter:" + strconv.Itoa(r.IntN(counters))
		from := tw.owner(key)
		tw.move(slotRanges(key), from, (from+1+r.IntN(2))%3)
		before := rounds.Load()
		await.True(t, "writers go on", func() bool { return rounds.Load() > before+1 || t.Failed() })
	}
	stop.Store(true)
	wg.Wait()
	c := tw.dial(0)
	for i := range counts {
		got := ask(t, c, "get", "counter:"+strconv.Itoa(i))
		if want := counts[i].Load(); got != strconv.FormatInt(want, 10) && (got != "-1" || want != 0) {
			t.Errorf("counter %d is %s after %d steps", i, got, want)
		}
	}
}

func TestAProxyWaitsForAnOwnerThatRecovers(t *testing.T) {
	tw := newProxies(t, 2)
	key := tw.keyOf(1, 0)
	tw.recovers(1, key)
	c := tw.dial(0)
	must(t, c.sendAll([][]string{{"set", key, "1"}, {"get", tw.keyOf(0, 0)}, {"get", key}}))
	for i := range 20 { // Others go on, whichever link they share.
		other := tw.dial(0)
		if got := ask(t, other, "set", tw.keyOf(i%2, 1), "1"); got != "OK" {
			t.Fatal(got)
		}
	}
	tw.recovered(1)
	for _, want := range []string{"OK", "null", "1"} {
		if r, err := c.receive(); err != nil || flat(r) != want {
			t.Fatalf("%s, %v; want %s", flat(r), err, want)
		}
	}
}

// A node dies with forwarded commands on it: reads find the new owner, writes whose
// fate nobody knows end their connection, and later commands go to the new owner.
// What a proxy has written itself waits for another node's answer to what its client had asked before, and for its copies all the same.
func TestAProxysOwnAnswersWaitForTheirCopiesBehindThoseOfOthers(t *testing.T) {
	copies, first := hlogtest.New(t, 1), true
	tw := newTownOn(t, 2, redis.Config{Proxy: true, Loops: 1}, func() store.Options {
		o := store.Options{Dir: t.TempDir(), Durability: store.EverySec}
		if first {
			first, o.Replicator = false, copies
		}
		return o
	})
	t.Cleanup(copies.Flow)
	mine, old, theirs := tw.keyOf(0, 0), tw.keyOf(0, 1), tw.keyOf(1, 0)
	c, other := tw.dial(0), tw.dial(0)
	for _, key := range []string{mine, old, theirs} {
		ask(t, c, "set", key, "1")
	}
	for n, commands := range [][][]string{
		{{"get", theirs}, {"set", mine, "2"}},
		{{"get", old}, {"get", theirs}, {"set", mine, "2"}},
	} {
		copies.Hold()
		must(t, c.sendAll(commands))
		pass(tw.nodes[0].srv)
		if got := ask(t, other, "get", theirs); got != "1" { // It goes the same way, so the answer to the former is there.
			t.Fatal(got)
		}
		pass(tw.nodes[0].srv)
		if unread(t, c.conn) > 0 {
			t.Errorf("%d: there is an answer before there are copies", n)
		}
		copies.Flow()
		for range commands {
			if r, err := c.receive(); err != nil || r.text != "1" && r.text != "OK" {
				t.Fatalf("%d: %+v, %v", n, r, err)
			}
		}
	}
}

func TestAProxySurvivesTheDeathOfAnOwner(t *testing.T) {
	tw := newProxies(t, 3)
	key := tw.keyOf(1, 0)
	reader, writer, later := tw.dial(0), tw.dial(0), tw.dial(0)
	for _, c := range []*rawClient{reader, writer} {
		ask(t, c, "get", key)
	}
	for loop := range 2 {
		release := tw.nodes[1].srv.HoldLoop(loop)
		defer release()
	}
	must(t, reader.send("get", key))
	must(t, writer.send("set", key, "1"))
	await.True(t, "both have left", func() bool { return tw.nodes[0].srv.Flying() == 2 && tw.nodes[0].srv.AllSent() })
	tw.nodes[1].dead.Store(true)
	tw.publish(func() {
		m, _, err := tw.m.Recover("n2", "n1", "n3")
		must(t, err)
		tw.m = m
	})
	if r, err := reader.receive(); err != nil || !r.null {
		t.Errorf("the read is answered %s, %v", flat(r), err)
	}
	if r, err := writer.receive(); err == nil {
		t.Errorf("the write is answered %s", flat(r))
	} else if !ended(err) {
		t.Error(err)
	}
	if got := ask(t, later, "set", key, "2"); got != "OK" {
		t.Errorf("a later write is answered %s", got)
	}
}

func TestAProxyGivesUpOnAnOwnerThatCannotBeReached(t *testing.T) {
	tw := newTown(t, 2, redis.Config{Proxy: true, ClusterWait: 100 * time.Millisecond})
	key := tw.keyOf(1, 0)
	tw.nodes[1].addr = "127.0.0.1:1" // nobody listens there
	tw.publish(func() {})
	c := tw.dial(0)
	must(t, c.sendAll([][]string{{"get", key}, {"set", key, "1"}, {"ping"}}))
	for _, want := range []string{"CLUSTERDOWN", "CLUSTERDOWN", "PONG"} {
		if r, err := c.receive(); err != nil || !strings.HasPrefix(r.text, want) {
			t.Fatalf("%+v, %v", r, err)
		}
	}
}

func TestAProxyFollowsSlotsOnTheirWay(t *testing.T) {
	tw := newProxies(t, 3)
	here := tw.keyOf(0, 0)
	gone := sibling(here)
	for node := range 3 {
		ask(t, tw.dial(node), "set", here, "1")
	}
	tw.publish(func() {
		tw.nodes[0].state.Exporting = []redis.Migration{{Ranges: slotRanges(here), Node: "n2"}}
		tw.nodes[1].state.Importing = []redis.Migration{{Ranges: slotRanges(here), Node: "n1"}}
	})
	for node := range 3 {
		c := tw.dial(node)
		if got := ask(t, c, "get", here); got != "1" {
			t.Errorf("node %d: %s", node, got)
		}
		if got := ask(t, c, "incr", gone); got != strconv.Itoa(node+1) {
			t.Errorf("node %d: %s", node, got)
		}
	}
	if n, _ := tw.nodes[1].st.Count(0); n != 1 {
		t.Errorf("the importing node has %d keys", n)
	}
}

func TestAProxyForwardsWithThePassword(t *testing.T) {
	tw := newTown(t, 2, redis.Config{Proxy: true, RequirePass: "secret"})
	c := tw.dial(0)
	if got := ask(t, c, "get", tw.keyOf(1, 0)); !strings.HasPrefix(got, "NOAUTH") {
		t.Fatal(got)
	}
	ask(t, c, "auth", "secret")
	if got := ask(t, c, "set", tw.keyOf(1, 0), "1"); got != "OK" {
		t.Fatal(got)
	}
}

// What another node has forwarded is never forwarded again, however much the two disagree.
func TestNothingIsForwardedTwice(t *testing.T) {
	tw := newProxies(t, 2)
	c := tw.dial(0)
	ask(t, c, "cluster", "forwarded")
	key := tw.keyOf(1, 0)
	if got := ask(t, c, "get", key); got != tw.movedTo(key, 1) {
		t.Errorf("got %s", got)
	}
}

func TestRepliesOfAProxyCanBeSwitchedOff(t *testing.T) {
	tw := newProxies(t, 2)
	theirs := tw.keyOf(1, 0)
	c := tw.dial(0)
	must(t, c.sendAll([][]string{
		{"client", "reply", "off"},
		{"set", theirs, "1"},
		{"get", theirs},
		{"client", "reply", "on"},
		{"get", theirs},
		{"client", "reply", "skip"},
		{"get", theirs},
		{"strlen", theirs},
		{"quit"},
	}))
	for _, want := range []string{"OK", "1", "1", "OK"} {
		if r, err := c.receive(); err != nil || r.text != want {
			t.Fatalf("%+v, %v; want %s", r, err, want)
		}
	}
	if _, err := c.receive(); !ended(err) {
		t.Fatalf("after QUIT: %v", err)
	}
}

func TestLargeValuesPassThroughAProxy(t *testing.T) {
	tw := newProxies(t, 2)
	theirs := tw.keyOf(1, 0)
	value := string(bytes.Repeat([]byte("0123456789abcdef"), 1<<15)) // 512 KiB
	c := tw.dial(0)
	var commands [][]string
	for range 5 {
		commands = append(commands, []string{"set", theirs, value}, []string{"get", theirs})
	}
	go func() {
		if err := c.sendAll(commands); err != nil {
			t.Error(err)
		}
	}()
	for i := range commands {
		if r, err := c.receive(); err != nil || i%2 == 0 && r.text != "OK" || i%2 == 1 && r.text != value {
			t.Fatalf("reply %d has %d bytes, %v", i, len(r.text), err)
		}
	}
	if err := c.conn.SetDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	ranges := view.RangesOf(view.Whole)
	tw.give(ranges, "n1")
	if got := ask(t, c, "strlen", theirs); got != "0" {
		t.Errorf("after the range came here: %s", got)
	}
}

// Clients that leave in the middle, and servers that stop: nothing is left behind,
// which TestMain checks.
func TestClientsOfAProxyMayLeaveAtAnyTime(t *testing.T) {
	tw := newProxies(t, 2)
	for i := range 50 {
		c := tw.dial(i % 2)
		key := tw.keyOf(1-i%2, i)
		must(t, c.sendAll([][]string{{"watch", key}, {"get", key}, {"multi"}, {"incr", key}, {"exec"}, {"watch", key}}))
		if i%3 == 0 {
			if _, err := c.receive(); err != nil {
				t.Fatal(err)
			}
		}
		must(t, c.conn.Close())
	}
}

// Nodes without a plain port reach each other's encrypted ones, with their own certificates.
func TestAProxyForwardsOverTLSWhereThereIsNothingElse(t *testing.T) {
	id := newIdentity(t)
	tw := newTown(t, 2, redis.Config{
		Proxy: true, Binds: []string{"127.0.0.1"},
		TLS: redis.TLSConfig{Port: redis.PortAny, CertFile: id.certFile, KeyFile: id.keyFile, CAFile: id.certFile},
	})
	clients := []*rawClient{tw.dial(0), tw.dial(1)}
	for _, n := range tw.nodes {
		n.addr, n.tlsAddr = "", n.srv.TLSAddr().String()
	}
	tw.publish(func() {})
	for i := range 20 {
		key := "key:" + strconv.Itoa(i)
		if got := ask(t, clients[i%2], "set", key, "1"); got != "OK" {
			t.Fatal(got)
		}
		if got := ask(t, clients[1-i%2], "get", key); got != "1" {
			t.Fatal(got)
		}
	}
}

// Links break under load: what was acknowledged is there, nothing happens twice,
// and a client that is not closed sees its own pipeline in order.
func TestAProxyKeepsOrderAndPromisesWhenLinksBreak(t *testing.T) {
	tw := newProxies(t, 3)
	const counters, breaks, burst, writers = 12, 30, 20, 3
	var stop atomic.Bool
	var wg sync.WaitGroup
	var rounds atomic.Int64
	var acked, unknown [counters]atomic.Int64
	for w := range writers {
		wg.Go(func() {
			c := tw.dial(w)
			for n := 0; !stop.Load(); n++ {
				counter := (n*writers + w) % counters
				key := "counter:" + strconv.Itoa(counter)
				mark := "mark:" + strconv.Itoa(n) + ":" + strconv.Itoa(w)
				var commands [][]string
				for i := range burst {
					commands = append(commands, []string{"incr", key}, []string{"set", mark, strconv.Itoa(i)})
				}
				if err := c.sendAll(append(commands, []string{"get", mark})); err != nil && !ended(err) {
					t.Error(err)
					return
				}
				for i := range 2*burst + 1 {
					got, err := c.receive()
					switch {
					case err != nil:
						unknown[counter].Add(int64(burst - (i+1)/2))
						c = tw.dial(w)
					case got.kind == '-':
						t.Errorf("command %d: %s", i, got.text)
						return
					case i == 2*burst && got.text != strconv.Itoa(burst-1):
						t.Errorf("after %d writes a client reads %s", burst, got.text)
					case i%2 == 0 && i < 2*burst:
						acked[counter].Add(1)
					}
					if err != nil {
						break
					}
				}
				rounds.Add(1)
			}
		})
	}
	for i := range breaks {
		before := rounds.Load()
		killer := tw.dial(i % 3)
		for line := range strings.Lines(ask(t, killer, "client", "list")) {
			id, _, _ := strings.Cut(strings.TrimPrefix(line, "id="), " ")
			if strings.Contains(line, " name=proxy ") {
				ask(t, killer, "client", "kill", "id", id)
			}
		}
		await.True(t, "writers go on", func() bool { return rounds.Load() > before+2 || t.Failed() })
	}
	stop.Store(true)
	wg.Wait()
	c := tw.dial(0)
	for i := range counters {
		n, _ := strconv.ParseInt(ask(t, c, "get", "counter:"+strconv.Itoa(i)), 10, 64)
		if low, high := acked[i].Load(), acked[i].Load()+unknown[i].Load(); n < low || n > high {
			t.Errorf("counter %d is %d, not from %d to %d", i, n, low, high)
		}
	}
}

// A node that hangs accepts connections and says nothing. Once its lease has ended
// nobody waits for it, not even those who came after.
func TestAProxyDoesNotWaitForANodeWithoutALease(t *testing.T) {
	tw := newProxies(t, 3)
	key := tw.keyOf(1, 0)
	for loop := range 2 {
		release := tw.nodes[1].srv.HoldLoop(loop)
		defer release()
	}
	tw.nodes[1].dead.Store(true)
	tw.publish(func() {})
	c := tw.dial(0)
	must(t, c.send("set", key, "1"))
	await.True(t, "it is under way", func() bool { return tw.nodes[0].srv.Flying() == 1 })
	tw.give(tw.m.Ranges("n2"), "n3")
	if r, err := c.receive(); err != nil || r.text != "OK" {
		t.Fatalf("%+v, %v", r, err)
	}
	if n := tw.nodes[0].srv.LinksTo("n2"); n != 0 {
		t.Errorf("%d links to a node without a lease", n)
	}
}
