package redis_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/server/redis"
)

// movedTo is the redirection that a key's owner is named with.
func (tw *town) movedTo(key string, node int) string {
	return "MOVED " + strconv.Itoa(int(record.SlotOf([]byte(key)))) + " " + tw.nodes[node].addr
}

func TestKeysOfOthersAreRedirected(t *testing.T) {
	tw := newTown(t, 3, redis.Config{})
	mine, theirs := tw.keyOf(0, 0), tw.keyOf(1, 0)
	c := tw.dial(0)
	for _, step := range []struct {
		want string
		args []string
	}{
		{"OK", []string{"set", mine, "1"}},
		{"1", []string{"get", mine}},
		{tw.movedTo(theirs, 1), []string{"get", theirs}},
		{tw.movedTo(theirs, 1), []string{"set", theirs, "1"}},
		{tw.movedTo(theirs, 1), []string{"set", theirs, "1", "nx"}},
		{tw.movedTo(theirs, 1), []string{"incr", theirs}},
		{tw.movedTo(theirs, 1), []string{"mget", theirs, sibling(theirs)}},
		{tw.movedTo(theirs, 1), []string{"object", "encoding", theirs}},
		{tw.movedTo(theirs, 1), []string{"bitop", "and", theirs, sibling(theirs)}},
		{tw.movedTo(theirs, 1), []string{"watch", theirs}},
		{"CROSSSLOT Keys in request don't hash to the same slot", []string{"mget", mine, theirs}},
		{"CROSSSLOT Keys in request don't hash to the same slot", []string{"mset", mine, "1", tw.keyOf(0, 1), "2"}},
		{"OK", []string{"mset", mine, "1", sibling(mine), "2"}},
		{"2", []string{"exists", mine, sibling(mine)}},
		{"PONG", []string{"ping"}},
		{"ERR SELECT is not allowed in cluster mode", []string{"select", "1"}},
		{"OK", []string{"select", "0"}},
		{"ERR MOVE is not allowed in cluster mode", []string{"move", mine, "1"}},
		{"ERR SWAPDB is not allowed in cluster mode", []string{"swapdb", "0", "1"}},
		{"ERR Copying to another database is not allowed in cluster mode", []string{"copy", mine, sibling(mine), "db", "1"}},
		{"1", []string{"copy", mine, sibling(mine), "replace"}},
	} {
		if got := ask(t, c, step.args...); got != step.want {
			t.Errorf("%q answers %q, want %q", step.args, got, step.want)
		}
	}
}

// Commands of one pipeline, mine and theirs mixed: replies keep their order.
func TestAPipelineKeepsItsOrderAroundRedirections(t *testing.T) {
	tw := newTown(t, 2, redis.Config{})
	c := tw.dial(0)
	var commands [][]string
	var want []string
	for i := range 300 {
		key := "key:" + strconv.Itoa(i)
		commands = append(commands, []string{"set", key, strconv.Itoa(i)}, []string{"get", key})
		if tw.owner(key) == 0 {
			want = append(want, "OK", strconv.Itoa(i))
		} else {
			want = append(want, tw.movedTo(key, 1), tw.movedTo(key, 1))
		}
	}
	if err := c.sendAll(commands); err != nil {
		t.Fatal(err)
	}
	for i, w := range want {
		if r, err := c.receive(); err != nil || r.text != w {
			t.Fatalf("reply %d to %q is %+v, %v; want %q", i, commands[i], r, err, w)
		}
	}
}

func TestTransactionsAreCheckedWhenQueuedAndWhenExecuted(t *testing.T) {
	tw := newTown(t, 2, redis.Config{})
	mine, theirs := tw.keyOf(0, 0), tw.keyOf(1, 0)
	c := tw.dial(0)
	check := func(want string, args ...string) {
		t.Helper()
		if got := ask(t, c, args...); got != want {
			t.Errorf("%q answers %q, want %q", args, got, want)
		}
	}
	check("OK", "multi")
	check("QUEUED", "set", mine, "1")
	check(tw.movedTo(theirs, 1), "set", theirs, "1")
	check("EXECABORT Transaction discarded because of previous errors.", "exec")

	check("OK", "multi")
	check("QUEUED", "set", mine, "1")
	check("QUEUED", "set", tw.keyOf(0, 1), "1")
	check("CROSSSLOT Keys in request don't hash to the same slot", "exec")
	check("ERR EXEC without MULTI", "exec")
	check("0", "exists", mine)

	check("OK", "multi")
	check("QUEUED", "set", mine, "1")
	tw.give(slotRanges(mine), "n2")
	check(tw.movedTo(mine, 1), "exec")
	check("ERR EXEC without MULTI", "exec")
	tw.give(slotRanges(mine), "n1")
	check("0", "exists", mine)

	check("OK", "watch", mine)
	check("OK", "multi")
	tw.give(slotRanges(mine), "n2")
	if r, err := c.do("exec"); err != nil || !r.null {
		t.Errorf("EXEC after a watched key has left answers %+v, %v", r, err)
	}
}

func TestPartsOfACutSlotAreServedByTheirOwners(t *testing.T) {
	tw := newTown(t, 2, redis.Config{})
	tag := tw.keyOf(0, 0)
	slot := record.SlotOf([]byte(tag))
	whole := view.SlotsRange(slot, slot)
	upper := view.Range{First: whole.First + (whole.Last-whole.First)/2 + 1, Last: whole.Last}
	tw.give(view.RangesOf(upper), "n2")
	clients := []*rawClient{tw.dial(0), tw.dial(1)}
	split := [2]string{}
	for i := range 64 {
		key := "{" + tag + "}" + strconv.Itoa(i)
		owner := tw.owner(key)
		split[owner] = key
		if got := ask(t, clients[owner], "set", key, "1"); got != "OK" {
			t.Errorf("the owner of %s says %s", key, got)
		}
		if got := ask(t, clients[1-owner], "get", key); got != tw.movedTo(key, owner) {
			t.Errorf("the other node says %s of %s", got, key)
		}
	}
	if split[0] == "" || split[1] == "" {
		t.Fatal("all keys fell into one half")
	}
	if got := ask(t, clients[0], "mget", split[0], split[1]); !strings.HasPrefix(got, "CROSSSLOT") {
		t.Errorf("MGET over both halves says %s", got)
	}
	if got := ask(t, clients[0], "cluster", "countkeysinslot", strconv.Itoa(int(slot))); got == "0" || got == "64" {
		t.Errorf("a half has %s of 64 keys", got)
	}
}

func TestSlotsOnTheirWayAskAndAreAskedFor(t *testing.T) {
	tw := newTown(t, 2, redis.Config{})
	here := tw.keyOf(0, 0)
	gone, third := sibling(here), "{"+here+"}.third"
	from, to := tw.dial(0), tw.dial(1)
	check := func(c *rawClient, want string, args ...string) {
		t.Helper()
		if got := ask(t, c, args...); got != want {
			t.Errorf("%q answers %q, want %q", args, got, want)
		}
	}
	check(from, "OK", "set", here, "1")
	tw.publish(func() {
		tw.nodes[0].state.Exporting = []redis.Migration{{Ranges: slotRanges(here), Node: "n2"}}
		tw.nodes[1].state.Importing = []redis.Migration{{Ranges: slotRanges(here), Node: "n1"}}
	})
	asks := "ASK " + strings.TrimPrefix(tw.movedTo(here, 1), "MOVED ")
	moved := tw.movedTo(here, 0)
	check(from, "1", "get", here)
	check(from, asks, "get", gone)
	check(from, "TRYAGAIN Multiple keys request during rehashing of slot", "mget", here, gone)
	check(from, asks, "mget", gone, third)

	check(to, moved, "get", gone)
	check(to, "OK", "asking")
	check(to, "OK", "set", gone, "2")
	check(to, moved, "get", gone)
	check(to, "OK", "asking")
	check(to, "2", "get", gone)
	check(to, "OK", "asking")
	check(to, "TRYAGAIN Multiple keys request during rehashing of slot", "mget", gone, third)
	check(to, "OK", "asking")
	check(to, "OK", "multi")
	check(to, "QUEUED", "get", gone)
	if r, err := to.do("exec"); err != nil || len(r.items) != 1 || r.items[0].text != "2" {
		t.Errorf("EXEC after ASKING: %+v, %v", r, err)
	}
	if text := ask(t, from, "cluster", "nodes"); !strings.Contains(text, "->-") {
		t.Errorf("CLUSTER NODES does not show the migration: %s", text)
	}
}

func TestScansShowOnlyWhatIsServedHere(t *testing.T) {
	tw := newTown(t, 2, redis.Config{})
	c := tw.dial(0)
	stays, leaves := tw.keyOf(0, 0), tw.keyOf(0, 1)
	for _, key := range []string{stays, leaves} {
		ask(t, c, "set", key, "1")
	}
	tw.give(slotRanges(leaves), "n2")
	for _, args := range [][]string{{"keys", "*"}, {"scan", "0", "count", "10000"}} {
		r, err := c.do(args...)
		if err != nil {
			t.Fatal(err)
		}
		if args[0] == "scan" {
			r = r.items[1]
		}
		if len(r.items) != 1 || r.items[0].text != stays {
			t.Errorf("%q shows %+v", args, r)
		}
	}
	for range 50 {
		if got := ask(t, c, "randomkey"); got != stays {
			t.Fatalf("RANDOMKEY answers %q", got)
		}
	}
	slot := strconv.Itoa(int(record.SlotOf([]byte(leaves))))
	if got := ask(t, c, "cluster", "countkeysinslot", slot); got != "0" {
		t.Errorf("%s keys in a slot that has left", got)
	}
	slot = strconv.Itoa(int(record.SlotOf([]byte(stays))))
	r, err := c.do("cluster", "getkeysinslot", slot, "10")
	if err != nil || len(r.items) != 1 || r.items[0].text != stays {
		t.Errorf("GETKEYSINSLOT answers %+v, %v", r, err)
	}
}
