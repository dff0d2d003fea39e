package redis_test

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/server/redis"
)

// movingNode is a node of a town that moves slots when it is asked.
type movingNode struct {
	*townNode

	plan sync.Mutex // guards what the test sets
	town *town
	gate chan struct{} // nil, or a move takes one of it
	fail error
}

// set changes what the next moves do.
func (n *movingNode) set(change func()) {
	n.plan.Lock()
	defer n.plan.Unlock()
	change()
}

func (n *movingNode) MoveSlot(slot uint16, to view.NodeID, _ bool, done func(error)) {
	n.plan.Lock()
	tw, gate, fail := n.town, n.gate, n.fail
	n.plan.Unlock()
	go func() {
		if gate != nil {
			<-gate
		}
		if fail != nil {
			done(fail)
			return
		}
		ranges := view.RangesOf(view.SlotsRange(slot, slot))
		from := tw.ownerOf(ranges[0].First)
		for i := range tw.nodes {
			if tw.nodes[i].id == to && i != from {
				tw.move(ranges, from, i)
			}
		}
		done(nil)
	}()
}

func (tw *town) ownerOf(p record.Place) int {
	tw.mu.Lock()
	defer tw.mu.Unlock()
	id, _ := tw.m.Owner(p)
	for i, n := range tw.nodes {
		if n.id == id {
			return i
		}
	}
	return -1
}

func idOf(n view.NodeID) string {
	sum := sha1.Sum([]byte(n))
	return hex.EncodeToString(sum[:])
}

// movingTown is a town whose nodes move slots.
func movingTown(t testing.TB, nodes int) (*town, []*movingNode) {
	var movers []*movingNode
	tw := newTownWith(t, nodes, redis.Config{}, func(n *townNode) redis.Cluster {
		m := &movingNode{townNode: n}
		movers = append(movers, m)
		return m
	})
	for _, m := range movers {
		m.set(func() { m.town = tw })
	}
	return tw, movers
}

func TestSetslotNodeMovesASlotWithItsKeys(t *testing.T) {
	tw, movers := movingTown(t, 3)
	key := tw.keyOf(0, 0)
	slot := strconv.Itoa(int(record.SlotOf([]byte(key))))
	source, target := tw.dial(0), tw.dial(1)
	ask(t, source, "set", key, "value")
	steps := []struct {
		c    *rawClient
		args []string
		want string
	}{
		{source, []string{"cluster", "setslot", slot, "importing", idOf("n2")}, "ERR I'm already the owner of hash slot " + slot},
		{target, []string{"cluster", "setslot", slot, "migrating", idOf("n1")}, "ERR I'm not the owner of hash slot " + slot},
		{source, []string{"cluster", "setslot", slot, "migrating", idOf("n1")}, "ERR Target node is myself"},
		{source, []string{"cluster", "setslot", slot, "node", idOf("nobody")}, "ERR I don't know about node " + idOf("nobody")},
		{source, []string{"cluster", "setslot", "16384", "node", idOf("n2")}, "ERR Invalid or out of range slot"},
		{source, []string{"cluster", "setslot", slot, "elsewhere", idOf("n2")}, "ERR Invalid CLUSTER SETSLOT action or number of arguments. Try CLUSTER HELP"},
		{target, []string{"cluster", "setslot", slot, "importing", idOf("n1")}, "OK"},
		{source, []string{"cluster", "setslot", slot, "migrating", idOf("n2")}, "OK"},
		{source, []string{"cluster", "countkeysinslot", slot}, "1"},
		{source, []string{"get", key}, "value"},
	}
	for _, s := range steps {
		if got := ask(t, s.c, s.args...); got != s.want {
			t.Fatalf("%v: %q, want %q", s.args, got, s.want)
		}
	}
	for c, mark := range map[*rawClient]string{source: "[" + slot + "->-" + idOf("n2") + "]", target: "[" + slot + "-<-" + idOf("n1") + "]"} {
		if text := ask(t, c, "cluster", "nodes"); !strings.Contains(text, mark) {
			t.Fatalf("%s is not shown in %s", mark, text)
		}
	}
	if r, err := source.do("cluster", "getkeysinslot", slot, "10"); err != nil || len(r.items) != 0 {
		t.Fatalf("a client is told to move %v by hand, %v", r, err)
	}
	// The client waits for the move, others do not.
	gate := make(chan struct{})
	movers[1].set(func() { movers[1].gate = gate })
	must(t, target.send("cluster", "setslot", slot, "node", idOf("n2")))
	if got := ask(t, tw.dial(1), "ping"); got != "PONG" {
		t.Fatal(got)
	}
	gate <- struct{}{}
	if r, err := target.receive(); err != nil || r.text != "OK" {
		t.Fatalf("%+v, %v", r, err)
	}
	if got := ask(t, target, "get", key); got != "value" {
		t.Fatalf("the new owner has %q", got)
	}
	for _, c := range []*rawClient{source, target, tw.dial(2)} {
		if got := ask(t, c, "cluster", "setslot", slot, "node", idOf("n2")); got != "OK" {
			t.Fatalf("when it has moved: %q", got)
		}
		if text := ask(t, c, "cluster", "nodes"); strings.Contains(text, "[") {
			t.Fatalf("the slot is still shown on its way: %s", text)
		}
	}
	movers[0].set(func() { movers[0].fail = errors.New("the target is full") })
	other := strconv.Itoa(int(record.SlotOf([]byte(tw.keyOf(0, 0)))))
	if got := ask(t, source, "cluster", "setslot", other, "node", idOf("n2")); got != "ERR the target is full" {
		t.Fatalf("a move that failed: %q", got)
	}
	if got := ask(t, source, "ping"); got != "PONG" {
		t.Fatal(got)
	}
}

func TestSetslotStableTakesAnAnnouncementBack(t *testing.T) {
	tw, _ := movingTown(t, 2)
	key := tw.keyOf(0, 0)
	slot := strconv.Itoa(int(record.SlotOf([]byte(key))))
	c := tw.dial(0)
	ask(t, c, "set", key, "value")
	ask(t, c, "cluster", "setslot", slot, "migrating", idOf("n2"))
	if got := ask(t, c, "cluster", "setslot", slot, "stable"); got != "OK" {
		t.Fatal(got)
	}
	if r, err := c.do("cluster", "getkeysinslot", slot, "10"); err != nil || len(r.items) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
}

func TestMigrateMovesAnAnnouncedSlotAndNoOther(t *testing.T) {
	tw, _ := movingTown(t, 2)
	key := tw.keyOf(0, 0)
	slot := strconv.Itoa(int(record.SlotOf([]byte(key))))
	c := tw.dial(0)
	host, port, _ := net.SplitHostPort(tw.nodes[1].addr)
	must(t, c.sendAll([][]string{{"set", key, "value"}, {"set", sibling(key), "other"}}))
	for range 2 {
		_, err := c.receive()
		must(t, err)
	}
	migrate := func(more ...string) []string { return append([]string{"migrate", host, port}, more...) }
	for _, s := range []struct {
		args []string
		want string
	}{
		{migrate(key, "0", "5000"), "ERR slot " + slot + " moves whole or not at all: announce it with CLUSTER SETSLOT " + slot + " MIGRATING " + idOf("n2") + ", or use `ostro migrate`"},
		{[]string{"cluster", "setslot", slot, "migrating", idOf("n2")}, "OK"},
		{migrate("", "0", "5000", "keys", sibling(key)+"-absent"), "NOKEY"},
		{migrate(key, "0", "5000", "copy"), "ERR MIGRATE moves keys with their slot here: COPY is not supported"},
		{migrate(key, "1", "5000"), "ERR keys stay in their database when they move: give 0 as the destination's"},
		{migrate("", "0", "5000", "keys", key, tw.keyOf(1, 0)), "CROSSSLOT Keys in request don't hash to the same slot"},
		{migrate("", "0", "5000"), "ERR syntax error"},
		{[]string{"migrate", host, "1", key, "0", "5000"}, "ERR no node of this cluster is at " + host + ":1; CLUSTER NODES lists them"},
		{migrate("", "0", "5000", "replace", "auth", "secret", "keys", key, sibling(key)), "OK"},
		{migrate("", "0", "5000", "keys", key), "NOKEY"},
	} {
		if got := ask(t, c, s.args...); got != s.want {
			t.Fatalf("%v: %q, want %q", s.args, got, s.want)
		}
	}
	d := tw.dial(1)
	if got := ask(t, d, "get", key); got != "value" {
		t.Fatalf("the new owner has %q", got)
	}
	if got := ask(t, d, "get", sibling(key)); got != "other" {
		t.Fatalf("the new owner has %q", got)
	}
}

// redisCLI runs Redis' own tool against a town.
func redisCLI(t *testing.T, args ...string) string {
	t.Helper()
	path, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Fatal("this test uses redis-cli: install the package redis-tools")
	}
	out, err := exec.Command(path, append([]string{"--cluster"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("redis-cli --cluster %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestRedisCLIReshardsRebalancesAndChecks(t *testing.T) {
	tw, _ := movingTown(t, 3)
	const keys = 300
	for i := range keys {
		key := fmt.Sprint("key:", i)
		if got := ask(t, tw.dial(tw.owner(key)), "set", key, key); got != "OK" {
			t.Fatal(got)
		}
	}
	at := tw.nodes[2].addr
	if out := redisCLI(t, "check", at); !strings.Contains(out, "All 16384 slots covered") || !strings.Contains(out, "All nodes agree") {
		t.Fatal(out)
	}
	redisCLI(t, "reshard", at, "--cluster-from", idOf("n1"), "--cluster-to", idOf("n2"), "--cluster-slots", "40", "--cluster-yes")
	if got, want := tw.slots(1), 5461+40; got != want && got != want+1 {
		t.Fatalf("n2 has %d slots, not %d", got, want)
	}
	redisCLI(t, "rebalance", at, "--cluster-threshold", "0.1")
	for i := range tw.nodes {
		if got := tw.slots(i); got < 5461 || got > 5462 {
			t.Fatalf("node %d has %d slots after the rebalance", i, got)
		}
	}
	if out := redisCLI(t, "check", at); !strings.Contains(out, "All 16384 slots covered") || strings.Contains(out, "[ERR]") || strings.Contains(out, "WARNING") {
		t.Fatal(out)
	}
	for i := range keys {
		key := fmt.Sprint("key:", i)
		if got := ask(t, tw.dial(tw.owner(key)), "get", key); got != key {
			t.Fatalf("%s is %q", key, got)
		}
	}
}

// slots is how many a node has.
func (tw *town) slots(node int) (n int) {
	tw.mu.Lock()
	defer tw.mu.Unlock()
	return len(tw.m.Ranges(tw.nodes[node].id).AtSlots())
}
