package redis_test

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/server/redis"
)

var (
	differentialSeed  = flag.Uint64("differential.seed", 0, "seed of the differential test; 0: the fixed ones")
	differentialSteps = flag.Int("differential.steps", 6000, "commands per seed of the differential test")
)

// TestRandomCommandsAnswerAsRedisDoes sends the same random commands to a real
// Redis and to Ostro, over two connections each, one of them in RESP3, and
// compares every reply byte for byte. What may differ is in agree.
func TestRandomCommandsAnswerAsRedisDoes(t *testing.T) {
	seeds := []uint64{1, 2, 3, 4}
	if *differentialSeed != 0 {
		seeds = []uint64{*differentialSeed}
	}
	theirs, ours := startRedis(t), startOstro(t, redis.Config{})
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			compareServers(t, newGenerator(seed), newPair(t, theirs, ours, 2), newPair(t, theirs, ours, 3))
		})
	}
}

// pair is a connection to each of the two servers.
type pair struct {
	theirs, ours *rawClient
	multi        bool
	watching     bool
}

func newPair(t *testing.T, theirs, ours string, proto int) *pair {
	t.Helper()
	p := &pair{theirs: dialRaw(t, theirs), ours: dialRaw(t, ours)}
	for _, c := range []*rawClient{p.theirs, p.ours} {
		if _, err := c.do("hello", strconv.Itoa(proto)); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func compareServers(t *testing.T, g *generator, pairs ...*pair) {
	var history []string
	step := func(which int, args []string) {
		history = append(history, fmt.Sprintf("%d> %s", which, strings.Join(quoteAll(args), " ")))
		theirs, ours := pairs[which].do(t, args, history)
		if why := agree(args, theirs, ours); why != "" {
			t.Fatalf("seed %d, command %d: %s\nredis: %q\nostro: %q\n%s", g.seed, len(history), why,
				clip(theirs.raw), clip(ours.raw), strings.Join(history[max(0, len(history)-25):], "\n"))
		}
	}
	step(0, []string{"flushall"})
	for len(history) < *differentialSteps {
		which := g.rand.IntN(len(pairs))
		p := pairs[which]
		for _, args := range g.commands(p.multi, watching(pairs)) {
			step(which, args)
			p.follow(args)
		}
	}
	for which, p := range pairs {
		if p.multi {
			step(which, []string{"exec"})
		}
	}
	compareContents(t, pairs[0])
}

// follow notes whether the connection is inside MULTI and whether it watches keys.
func (p *pair) follow(args []string) {
	switch name := strings.ToLower(args[0]); {
	case name == "watch" && !p.multi:
		p.watching = true
	case name == "multi" && len(args) == 1:
		p.multi = true
	case name == "exec", name == "discard" && len(args) == 1 && p.multi:
		p.multi, p.watching = false, p.watching && !p.multi
	case name == "unwatch" && !p.multi:
		p.watching = false
	}
}

func watching(pairs []*pair) bool {
	return slices.ContainsFunc(pairs, func(p *pair) bool { return p.watching || p.multi })
}

func (p *pair) do(t *testing.T, args, history []string) (theirs, ours *reply) {
	t.Helper()
	theirs, err1 := p.theirs.do(args...)
	ours, err2 := p.ours.do(args...)
	if err1 != nil || err2 != nil {
		t.Fatalf("redis: %v, ostro: %v\n%s", err1, err2, strings.Join(history[max(0, len(history)-25):], "\n"))
	}
	return theirs, ours
}

// agree tells how two replies differ, "" if they do not. These may:
//   - keys come in another order, and random keys are random;
//   - times differ by the moments between the two servers;
//   - memory is measured differently.
func agree(args []string, theirs, ours *reply) string {
	switch strings.ToLower(args[0]) {
	case "keys":
		return sameItems(theirs, ours)
	case "scan":
		if theirs.kind == '*' && ours.kind == '*' {
			return "" // compareContents goes through whole scans
		}
	case "randomkey":
		if theirs.null == ours.null {
			return ""
		}
	case "ttl", "pttl", "expiretime", "pexpiretime":
		return sameTime(theirs, ours)
	case "memory":
		if theirs.kind == ours.kind && theirs.null == ours.null && theirs.kind == ':' {
			return ""
		}
	}
	if theirs.raw != ours.raw {
		return "the replies differ"
	}
	return ""
}

func sameItems(theirs, ours *reply) string {
	if theirs.kind != '*' || ours.kind != '*' {
		if theirs.raw != ours.raw {
			return "the replies differ"
		}
		return ""
	}
	if !slices.Equal(theirs.sorted(), ours.sorted()) {
		return "the lists differ"
	}
	return ""
}

func (r *reply) sorted() (raws []string) {
	for _, item := range r.items {
		raws = append(raws, item.raw)
	}
	slices.Sort(raws)
	return raws
}

func sameTime(theirs, ours *reply) string {
	a, err1 := strconv.ParseInt(theirs.text, 10, 64)
	b, err2 := strconv.ParseInt(ours.text, 10, 64)
	if err1 != nil || err2 != nil || a < 0 || b < 0 {
		if theirs.raw != ours.raw {
			return "the replies differ"
		}
		return ""
	}
	if d := a - b; d < -5000 || d > 5000 {
		return "the times are too far apart"
	}
	return ""
}

// compareContents checks that all databases hold the same in the end, and that a
// scan finds all of it.
func compareContents(t *testing.T, p *pair) {
	t.Helper()
	for db := range 16 {
		p.do(t, []string{"select", strconv.Itoa(db)}, nil)
		keys, ours := p.do(t, []string{"keys", "*"}, nil)
		if why := sameItems(keys, ours); why != "" {
			t.Fatalf("database %d: %s\nredis: %q\nostro: %q", db, why, keys.raw, ours.raw)
		}
		if got, want := scanAll(t, p.ours), keys.sorted(); !slices.Equal(got, want) {
			t.Errorf("database %d: a scan finds %q, want %q", db, got, want)
		}
		for _, k := range keys.items {
			for _, args := range [][]string{{"type", k.text}, {"get", k.text}, {"pexpiretime", k.text}} {
				if a, b := p.do(t, args, nil); agree(args, a, b) != "" {
					t.Errorf("%q in database %d: redis %q, ostro %q", args, db, a.raw, b.raw)
				}
			}
		}
	}
}

// scanAll goes through all keys with SCAN and returns them sorted, each once.
func scanAll(t *testing.T, c *rawClient) (keys []string) {
	t.Helper()
	for cursor := "0"; ; {
		r, err := c.do("scan", cursor, "count", "3")
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range r.items[1].items {
			keys = append(keys, item.raw)
		}
		if cursor = r.items[0].text; cursor == "0" {
			slices.Sort(keys)
			return slices.Compact(keys)
		}
	}
}

func clip(s string) string { return s[:min(len(s), 1000)] }

func quoteAll(args []string) []string {
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = strconv.Quote(a)
	}
	return quoted
}
