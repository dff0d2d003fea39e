package nemesis

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ostrodb/ostro/test/harness"
	"github.com/ostrodb/ostro/test/linearize"
)

// A long lease, so that a machine which is slow for a moment is not taken for an etcd that is away for longer. The proportions are
// those of any other.
const (
	outageLease = 5 * time.Second
	outageLasts = outageLease * 17 / 20
	// outageBorne is what docs/operations.md promises, less a round trip.
	outageBorne = outageLease*61/64 - outageLease/16

	outageClients = 6
)

// outage has etcd away until a time, and returns when it answers again.
type outage struct {
	name   string
	begin  func(*game) error
	end    func(*game) error
	starts bool // to end it, etcd is started
}

var shortOutages = []outage{
	{"SIGSTOP", func(g *game) error { return g.cluster.Etcd.Pause() }, func(g *game) error { g.cluster.Etcd.Resume(); return nil }, false},
	{"SIGKILL", func(g *game) error { g.cluster.Etcd.Kill(); return nil }, func(g *game) error { return g.cluster.StartEtcd() }, true},
}

// Whoever asks for anything meanwhile gets an answer, and segments open, close and are cleaned.
func TestAnEtcdThatIsAwayForNearlyALeaseIsMissedByNobody(t *testing.T) {
	endureAll(t, false, slices.Concat(shortOutages, shortOutages))
}

// One that starts again hashes the password of each node before it has time for its lease: that is a part of the outage.
func TestAnEtcdWithPasswordsThatIsAwayForNearlyALeaseIsMissedByNobody(t *testing.T) {
	endureAll(t, true, slices.Concat(shortOutages, shortOutages[1:]))
}

func endureAll(t *testing.T, secure bool, all []outage) {
	g := newGame(t, seedOf(t), harness.ClusterOptions{
		Binary: binary, Nodes: 4, Secure: secure, Args: append([]string{"--cluster-lease", outageLease.String()}, smallSegments...),
	})
	for _, o := range all {
		for try := 0; !g.endure(o, outageLasts>>try); try++ {
			if try == 10 {
				t.Fatalf("%s: etcd was away for longer than a lease each time: this machine is too slow to show anything", o.name)
			}
		}
	}
}

// endure is one outage that shall last for so long; false if it was longer than a lease bears, for then it shows nothing.
func (g *game) endure(o outage, lasts time.Duration) bool {
	g.t.Helper()
	g.round++
	g.must("be healthy", g.cluster.WaitHealthy())
	g.must("renew all leases", harness.Eventually("all leases are as good as new", g.renewed))
	sum, err := g.startTally()
	g.must("begin to count", err)
	defer sum.close()
	g.load = StartLoad(LoadOptions{Seed: g.seed<<16 + g.round, Addrs: g.cluster.Addrs(), Clients: outageClients, Bulks: 1, Width: 2})
	g.must("get answers before", g.answers(answersBefore))
	takes, err := g.takes(o)
	g.must("log in", err)
	g.hold(0, outageLease/16) // at any moment between renewals

	silent := g.silences()
	stalled := stalls()
	began := time.Now()
	g.must(o.name, o.begin(g))
	answers, writes := g.load.Answers(), g.load.Writes()
	time.Sleep(lasts - takes - time.Since(began))
	answers, writes = g.load.Answers()-answers, g.load.Writes()-writes
	held := time.Since(began)
	g.must(o.name, o.end(g))
	g.must("ask etcd", harness.Eventually("etcd answers", func() error { _, err := g.cluster.Metadata(); return err }))
	lasted := time.Since(began)
	late, err := g.logins(o)
	g.must("log in", err)
	lasted += late + stalled()

	g.must("get answers after", g.answers(answersAfter))
	g.load.Stop()
	n, err := sum.check()
	g.must("count additions once", err)
	g.say("%s: etcd was away for %.2f of a lease; %d answers and %d writes meanwhile; %s; %d additions", o.name, lasted.Seconds()/outageLease.Seconds(), answers, writes, g.load, n)
	if lasted >= outageBorne {
		g.must("be healthy", g.cluster.WaitHealthy())
		return false
	}
	g.must("answer as if nothing were", g.undisturbed())
	if now := g.silences(); now > silent {
		g.t.Fatalf("%s: nodes fell silent %d times", o.name, now-silent)
	}
	// Who stands still has no more than what was under way, and bulks are of eight writes: a machine that has a third of its cores for a while has more.
	if held > outageLasts/4 && (answers < 2*outageClients || writes < 4*outageClients) {
		g.t.Fatalf("%s: %d answers and %d writes while etcd was away: they stood still", o.name, answers, writes)
	}
	g.must("be healthy", g.cluster.WaitHealthy())
	g.must("make sense", g.load.Check())
	return true
}

// stalls looks for how long this machine stands still, and tells when it is called: nodes may have stood as long before they renewed
// their leases, which they know of no more than of an outage.
func stalls() (longest func() time.Duration) {
	over, most := make(chan struct{}), make(chan time.Duration)
	go func() {
		var longest time.Duration
		for was := time.Now(); ; {
			select {
			case <-over:
				most <- longest
				return
			case <-time.After(time.Millisecond):
			}
			now := time.Now()
			longest, was = max(longest, now.Sub(was)), now
		}
	}()
	return func() time.Duration { close(over); return <-most }
}

// takes is how long before the end of an outage etcd is to go on, for all to be as before by then.
func (g *game) takes(o outage) (time.Duration, error) {
	if !o.starts {
		return 0, nil
	}
	hashes, err := g.logins(o)
	return outageLease/6 + 2*hashes, err
}

// logins is how long an etcd that was started may need until it has let all nodes in again, even if we came first.
func (g *game) logins(o outage) (time.Duration, error) {
	if !o.starts {
		return 0, nil
	}
	one, err := g.cluster.Login()
	return one * time.Duration(len(g.cluster.Nodes)), err
}

// undisturbed says what clients had to notice.
func (g *game) undisturbed() error {
	for _, op := range g.load.history.Ops() {
		if op.Return == linearize.Never {
			return fmt.Errorf("%v got no answer", op)
		}
	}
	for _, r := range g.load.routers() {
		for _, why := range slices.Sorted(maps.Keys(r.Refusals)) {
			if why != "MOVED" {
				return fmt.Errorf("%d were refused: %s", r.Refusals[why], why)
			}
		}
	}
	return nil
}

// renewed says which node has not renewed its lease lately.
func (g *game) renewed() error {
	for _, n := range g.cluster.Nodes {
		left, err := n.Metric("ostro_cluster_lease_seconds")
		if err == nil && left < (outageBorne-outageLease/64).Seconds() {
			err = fmt.Errorf("the lease of %s ends in %.2f s", n.ID, left)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// silences counts how often nodes fell silent for want of a lease.
func (g *game) silences() (times int) {
	for _, n := range g.cluster.Nodes {
		times += strings.Count(n.Tail(1000), "lease has ended")
	}
	return times
}
