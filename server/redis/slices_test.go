package redis

import (
	"fmt"
	"strings"
	"testing"

	eventually "github.com/ostrodb/ostro/internal/await" // await is a ruling here
)

// fill writes keys to a database without the front door.
func (b *bench) fill(tb testing.TB, db, keys int) {
	tb.Helper()
	b.do(words(fmt.Sprint("select ", db)))
	for i := range keys {
		if got := b.do(words(fmt.Sprintf("set key:%d v", i))); got != "+OK\r\n" {
			tb.Fatal(got)
		}
	}
}

// turns runs a command until it is done, and counts how often others had their turn.
func (b *bench) turns(line string) (turns int) {
	for b.run(words(line)) == later {
		turns++
	}
	return turns
}

func TestCommandsThatGoThroughADatabaseMakeWayForOthers(t *testing.T) {
	const keys = 40_000
	b := newBench(t)
	b.fill(t, 0, keys)
	b.fill(t, 1, 1)
	most := keysSteps * (keysStep + 16) // keys of a run: a bucket has a few more than were asked for
	for _, s := range []struct {
		db    string
		line  string
		turns int
		want  string
	}{
		{"0", "keys *", keys / most, fmt.Sprintf("*%d\r\n", keys)},
		{"0", "keys nothing", keys / most, "*0\r\n"},
		{"1", "keys *", 1, "*1\r\n$5\r\nkey:0\r\n"},
		{"1", "randomkey", 0, "$5\r\nkey:0\r\n"},
	} {
		b.do(words("select " + s.db))
		if turns := b.turns(s.line); turns < s.turns {
			t.Errorf("%s of database %s lets others have %d turns, want %d", s.line, s.db, turns, s.turns)
		}
		if got := string(b.c.out.Bytes()); !strings.HasPrefix(got, s.want) {
			t.Errorf("%s of database %s answers %.60q", s.line, s.db, got)
		}
	}
}

func TestRandomKeyOfADatabaseThatIsSmallAmongLargeOnesIsFoundInSteps(t *testing.T) {
	b := newBench(t)
	b.fill(t, 0, 60_000)
	b.fill(t, 1, 1)
	var turns int
	for range 20 { // By luck it is found at once.
		turns = max(turns, b.turns("randomkey"))
		if got := string(b.c.out.Bytes()); got != "$5\r\nkey:0\r\n" {
			t.Fatalf("RANDOMKEY answers %q", got)
		}
	}
	if turns == 0 {
		t.Error("nobody had a turn meanwhile")
	}
}

func TestWhatSyncsOrComputesForLongIsNotDoneOnTheLoop(t *testing.T) {
	b := newBench(t)
	long := strings.Repeat("ab", 200)
	fill := func() { b.do(words("mset a " + long + " b " + long + " c abc")) }
	want := func(line string, want verdict) {
		t.Helper()
		if got := b.run(words(line)); got != want {
			t.Errorf("%s: verdict %d, want %d", line, got, want)
		}
		b.c.conn.resume = resumption{}
	}
	fill()
	for _, line := range []string{"lcs a b", "lcs a b idx", "lcs a b len"} {
		want(line, later)
	}
	want("lcs a c", done)
	for _, line := range []string{"flushdb", "flushall", "swapdb 0 1"} {
		fill()
		want(line, later)
		eventually.True(t, line+" has happened", func() bool { return b.do(words("dbsize")) == ":0\r\n" })
	}
}

func TestKeysAreWatchedOnceHoweverManyThereAre(t *testing.T) {
	b := newBench(t)
	for range 2 {
		for i := range 200 {
			b.do(words(fmt.Sprintf("watch k%d k%d k%d", i, i+1, i)))
		}
	}
	if n := len(b.c.conn.multi.watch); n != 201 {
		t.Errorf("%d keys are watched, want 201", n)
	}
	b.do(words("unwatch"))
	b.do(words("watch k1"))
	if n := len(b.c.conn.multi.watch); n != 1 {
		t.Errorf("%d keys are watched, want 1", n)
	}
}
