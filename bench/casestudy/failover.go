package casestudy

import (
	"math/rand/v2"
	"sync"
)

// T is a *testing.T.
type T interface {
	Helper()
	Logf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Cleanup(f func())
	TempDir() string
}

// Failover kills the front end of a database under load, opens it from some
// replica, and checks that nothing acknowledged is missing and nothing is there by half; so
// many times. Sometimes a replica is killed first, sometimes everybody at once.
func Failover(t T, s Study, kills int) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	const replicas = 3
	c, err := startCluster(Place{Dir: t.TempDir(), Replicas: replicas, Memory: s.Memory, Log: s.Log}, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	l := load{Writers: 4, Bytes: 1000}
	last := make([]uint64, l.Writers) // the last transaction of each that was acknowledged
	commits, also := 0, map[string]int{}
	for kill := range kills + 1 {
		f, err := start("the front end", order{Role: "front", Place: c.place, Index: r.IntN(replicas), Load: &l})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(f.end)
		last = checkOpened(t, f, last)
		if kill == kills {
			break
		}
		commits += f.listen(t, last, 1+r.IntN(200))
		victims := c.killWith(f, r.IntN(10), r.IntN(replicas))
		also[victims]++
		commits += f.rest(last)
		f.end()
		if err := c.restart(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d kills of the front end, %v; %d commits acknowledged", kills, also, commits)
}

// killWith kills the front end, in company or alone, as the dice say.
func (c *cluster) killWith(f *child, dice, replica int) string {
	switch {
	case dice < 2:
		var all sync.WaitGroup
		for _, p := range append([]*child{f, c.nic}, c.replicas...) {
			all.Go(p.kill)
		}
		all.Wait()
		return "with everybody"
	case dice < 4:
		c.replicas[replica].kill()
		f.kill()
		return "after a replica"
	default:
		f.kill()
		return "alone"
	}
}

// checkOpened checks what a front end has found, and returns it.
func checkOpened(t T, f *child, expect []uint64) []uint64 {
	t.Helper()
	var word opened
	if err := f.hear(&word); err != nil {
		t.Fatal(err)
	}
	if word.Error != "" {
		t.Fatal(word.Error)
	}
	for w, last := range word.Last {
		// One more may have been on its way when the front end was killed.
		if last != expect[w] && last != expect[w]+1 {
			t.Fatalf("writer %d is at transaction %d, and %d was acknowledged last", w, last, expect[w])
		}
	}
	return word.Last
}

// listen hears so many acknowledgements.
func (c *child) listen(t T, last []uint64, n int) int {
	t.Helper()
	for range n {
		var a ack
		if err := c.hear(&a); err != nil {
			t.Fatal(err)
		}
		last[a.Writer] = a.N
	}
	return n
}

// rest hears what a killed front end had said before.
func (c *child) rest(last []uint64) (n int) {
	for ; ; n++ {
		var a ack
		if c.out.Decode(&a) != nil {
			return n
		}
		last[a.Writer] = a.N
	}
}
