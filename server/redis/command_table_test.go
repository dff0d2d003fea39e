package redis_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/server/redis"
)

// Flags that Redis has for what does not exist here.
var foreignFlags = []string{"no_async_loading", "protected"}

// Commands that came after the Redis at hand, and one between our own nodes.
var newer = []string{"client|setinfo", "client|no-touch", "cluster|forwarded", "function|info", "function|logs"}

func TestCommandsAreDescribedAsInRedis(t *testing.T) {
	theirs, ours := dialRaw(t, startRedis(t)), dialRaw(t, startOstro(t, redis.Config{}))
	all, err := ours.do("command")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all.items {
		compareCommand(t, theirs, c)
		for _, sub := range c.items[9].items {
			compareCommand(t, theirs, sub)
		}
	}
	if len(all.items) < 80 {
		t.Errorf("there are only %d commands", len(all.items))
	}
}

// compareCommand compares a command's entry in COMMAND with Redis'. Commands that it does
// not have are left out.
func compareCommand(t *testing.T, theirs *rawClient, ours *reply) {
	t.Helper()
	name := ours.items[0].text
	r, err := theirs.do("command", "info", name)
	if err != nil {
		t.Fatal(err)
	}
	want := r.items[0]
	if want.null {
		if !slices.Contains(newer, name) && !strings.HasPrefix(name, "tenant") {
			t.Errorf("Redis has no command %s", name)
		}
		return
	}
	for i, what := range []string{"name", "arity", "flags", "first key", "last key", "key step", "categories"} {
		got, want := texts(ours.items[i]), texts(want.items[i])
		if i == 2 {
			want = slices.DeleteFunc(want, func(flag string) bool { return slices.Contains(foreignFlags, flag) })
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %s %q, want %q", name, what, got, want)
		}
	}
}

func texts(r *reply) (out []string) {
	if r.items == nil {
		return []string{r.text}
	}
	for _, item := range r.items {
		out = append(out, item.text)
	}
	return out
}
