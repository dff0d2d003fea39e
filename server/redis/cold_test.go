package redis_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server/redis"
)

// tightMemory is a store whose memory holds far less than the tests put into it.
func tightMemory(t *testing.T, d store.Durability) store.Options {
	return store.Options{Dir: t.TempDir(), Durability: d, SegmentBytes: 128 << 10, MemoryBytes: 1 << 20, Policy: store.Spill}
}

// The same random commands as in TestRandomCommandsAnswerAsRedisDoes, but over
// many keys and among large values, so that most of what they meet is cold.
func TestRandomCommandsOnColdKeysAnswerAsRedisDoes(t *testing.T) {
	theirs := startRedis(t)
	for _, d := range []store.Durability{store.Checkpoint, store.EverySec} {
		t.Run(d.String(), func(t *testing.T) {
			ours := startOstroOn(t, tightMemory(t, d), redis.Config{})
			one, other := newPair(t, theirs, ours, 2), newPair(t, theirs, ours, 3)
			const enough, most = 100, 30
			reads := 0
			for round := uint64(0); reads < enough && round < most; round++ { // What is cold when is up to the background.
				g := newGenerator(max(*differentialSeed, 1) + round)
				g.keyCount, g.fillEvery = 2000, 3
				compareServers(t, g, one, other)
				reads = coldReads(t, ours)
			}
			if reads < enough {
				t.Errorf("only %d records came from disk: the test did not test it", reads)
			}
		})
	}
}

func coldReads(t *testing.T, addr string) int {
	t.Helper()
	return coldReadsBy(t, dialRaw(t, addr))
}

// coldReadsBy asks as a client that may know.
func coldReadsBy(t *testing.T, c *rawClient) int {
	t.Helper()
	r, err := c.do("info", "ostro")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(r.text) {
		if n, found := strings.CutPrefix(strings.TrimSpace(line), "cold_reads:"); found {
			reads, err := strconv.Atoi(n)
			if err != nil {
				t.Fatal(err)
			}
			return reads
		}
	}
	t.Fatal("INFO does not tell the cold reads")
	return 0
}

// Values in many pieces, transactions over several of them, and what EXEC must not
// do twice while it waits for the disk.
func TestColdTransactionsHappenOnce(t *testing.T) {
	c := dialRaw(t, startOstroOn(t, tightMemory(t, store.EverySec), redis.Config{}))
	const n = 200
	value := func(i int) string { return strings.Repeat(strconv.Itoa(i%10), 20_000) }
	for i := range n {
		if got := ask(t, c, "set", "large"+strconv.Itoa(i), value(i)); got != "OK" {
			t.Fatal(got)
		}
		ask(t, c, "set", "small"+strconv.Itoa(i), strconv.Itoa(i))
	}
	for i := range n {
		large, small := "large"+strconv.Itoa(i), "small"+strconv.Itoa(i)
		if got := ask(t, c, "get", large); got != value(i) {
			t.Fatalf("%s is %d bytes, want %d", large, len(got), len(value(i)))
		}
		if i%10 != 0 {
			continue
		}
		ask(t, c, "multi")
		for _, args := range [][]string{{"incr", small}, {"append", large, "x"}, {"keys", "small*"}, {"incr", small}, {"dbsize"}, {"strlen", large}} {
			ask(t, c, args...)
		}
		r, err := c.do("exec")
		if err != nil {
			t.Fatal(err)
		}
		got := []string{r.items[0].text, r.items[1].text, strconv.Itoa(len(r.items[2].items)), r.items[3].text, r.items[4].text, r.items[5].text}
		want := []string{strconv.Itoa(i + 1), "20001", strconv.Itoa(n), strconv.Itoa(i + 2), strconv.Itoa(2 * n), "20001"}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("EXEC answers %q, want %q", got, want)
		}
	}
	if reads := coldReads(t, c.conn.RemoteAddr().String()); reads < 100 {
		t.Errorf("only %d records came from disk: the test did not test it", reads)
	}
}
