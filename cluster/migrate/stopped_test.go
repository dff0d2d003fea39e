package migrate

import (
	"context"
	"sync"
	"testing"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// Other migrations of the source, and those who take back what the target had, wait for cuts; so do clients, for them.
func TestATargetThatDoesNotReadHoldsUpNoCutOfItsSource(t *testing.T) {
	for name, shared := range map[string]bool{"over the wire": false, "what landed nowhere": true} {
		t.Run(name, func(t *testing.T) {
			const n, bytes = 40, 200_000 // More than a connection holds on its way.
			source := fillWith(t, newStore(t), n, bytes)
			made := make(chan struct{})
			p := pullsOf(t, source, 1000, 1, meta.MigrationOptions{}, func(s *Source, to *peer.Server) {
				s.Handle(to)
				told := sync.OnceFunc(func() { close(made) })
				to.HandleQuietly(methodPull, telling(s.pull, told))
				to.HandleQuietly(methodPullInto, telling(s.pullInto, told))
			})
			p.m.o.SharedMemory = shared
			l := stoppedLane(t, p)
			<-made // Its entries are to be sent from where they lie.
			passed := make(chan struct{})
			source.AfterGuards(func() { close(passed) })
			<-passed
			for len(l.under) > 0 { // It passed though nobody gave the target up.
				check(t, l.once(t.Context()))
			}
			allPulled(t, p, n)
		})
	}
}

// telling is a handler that tells when it has made an answer.
func telling(h peer.Handler, told func()) peer.Handler {
	return func(ctx context.Context, c *peer.Call) (any, []byte, error) {
		defer told()
		return h(ctx, c)
	}
}

// stoppedLane asks for everything with one pull, and for nearly nothing with some that are sent with it. It takes no answer.
// If memory is shared, its slots are small.
func stoppedLane(t *testing.T, p *pulls) *lane {
	t.Helper()
	p.left = nil
	for i := range 8 { // They leave together.
		p.left = append(p.left, &partition{piece: view.Range{First: record.Place(i), Last: record.Place(i)}})
	}
	p.left[len(p.left)-1].piece = view.Whole // It is asked for first.
	l, err := p.lane(len(p.left))
	check(t, err)
	t.Cleanup(func() {
		l.dropLanding(context.Background(), false)
		l.close()
	})
	l.prepare(t.Context())
	if shared := p.m.o.SharedMemory; shared != (l.land != nil) {
		t.Fatalf("memory is shared: %v, and there is some: %v", shared, l.land != nil)
	}
	p.m.o.PullBytes = peer.MaxBulkBytes / 2
	check(t, l.fill(t.Context()))
	return l
}
