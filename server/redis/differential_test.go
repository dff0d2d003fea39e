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

// comparison is a run of the same commands on both servers.
type comparison struct {
	t       *testing.T
	g       *generator
	pairs   []*pair
	history []string
}

func compareServers(t *testing.T, g *generator, pairs ...*pair) {
	t.Helper()
	c := &comparison{t: t, g: g, pairs: pairs}
	c.run(0, [][]string{{"flushall"}})
	for len(c.history) < *differentialSteps {
		c.run(c.draw())
	}
	for which, p := range pairs {
		if p.multi {
			c.run(which, [][]string{{"exec"}})
		}
	}
	compareContents(t, pairs[0])
}

// draw picks a connection and one command for it or, to be sent at once, several.
func (c *comparison) draw() (which int, commands [][]string) {
	which = c.g.rand.IntN(len(c.pairs))
	burst := 1
	if c.g.oneIn(4) {
		burst += c.g.rand.IntN(30)
	}
	for len(commands) < burst {
		for _, args := range c.g.commands(c.pairs[which].multi, watching(c.pairs)) {
			c.pairs[which].follow(args)
			commands = append(commands, args)
		}
	}
	return which, commands
}

// run sends the commands to both servers and compares what they answer.
func (c *comparison) run(which int, commands [][]string) {
	c.t.Helper()
	p := c.pairs[which]
	c.check(p.theirs.sendAll(commands))
	c.check(p.ours.sendAll(commands))
	for _, args := range commands {
		c.history = append(c.history, fmt.Sprintf("%d> %s", which, strings.Join(quoteAll(args), " ")))
		theirs, err := p.theirs.receive()
		c.check(err)
		ours, err := p.ours.receive()
		c.check(err)
		if why := agree(args, theirs, ours); why != "" {
			c.t.Fatalf("seed %d, command %d: %s\nredis: %q\nostro: %q\n%s", c.g.seed, len(c.history), why,
				clip(theirs.raw), clip(ours.raw), c.last())
		}
	}
}

func (c *comparison) check(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatalf("seed %d, command %d: %v\n%s", c.g.seed, len(c.history), err, c.last())
	}
}

// last is what was sent before it went wrong.
func (c *comparison) last() string {
	return strings.Join(c.history[max(0, len(c.history)-25):], "\n")
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

func (p *pair) do(t *testing.T, args ...string) (theirs, ours *reply) {
	t.Helper()
	theirs, err := p.theirs.do(args...)
	must(t, err)
	ours, err = p.ours.do(args...)
	must(t, err)
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
	if d := a - b; d < -60_000 || d > 60_000 {
		return "the times are too far apart"
	}
	return ""
}

// compareContents checks that all databases hold the same in the end, and that a
// scan finds all of it.
func compareContents(t *testing.T, p *pair) {
	t.Helper()
	for db := range 16 {
		p.do(t, "select", strconv.Itoa(db))
		keys, ours := p.do(t, "keys", "*")
		if why := sameItems(keys, ours); why != "" {
			t.Fatalf("database %d: %s\nredis: %q\nostro: %q", db, why, keys.raw, ours.raw)
		}
		if got, want := scanAll(t, p.ours), keys.sorted(); !slices.Equal(got, want) {
			t.Errorf("database %d: a scan finds %q, want %q", db, got, want)
		}
		for _, k := range keys.items {
			for _, args := range [][]string{{"type", k.text}, {"get", k.text}, {"pexpiretime", k.text}} {
				if a, b := p.do(t, args...); agree(args, a, b) != "" {
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
