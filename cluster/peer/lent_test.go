package peer_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/ostrodb/ostro/cluster/peer"
)

func TestMemoryThatIsLentIsTheHandlersUntilItReturns(t *testing.T) {
	const callers, rounds, size = 4, 6, 2 << 20
	met := make(chan struct{})
	meet := sync.OnceFunc(func() { close(met) })
	var inside sync.WaitGroup
	inside.Add(2)
	at := listen(t, "127.0.0.1:0", func(s *peer.Server) {
		s.HandleLent("keep", func(_ context.Context, c *peer.Call) (any, []byte, error) {
			select {
			case <-met:
			default:
				inside.Done() // Two at least are inside at once.
				inside.Wait()
				meet()
			}
			if want := bytes.Repeat(c.Head[:1], size); !bytes.Equal(c.Bulk, want) {
				return nil, nil, fmt.Errorf("other bytes than were sent to %q", c.Head)
			}
			return nil, nil, nil
		})
	})
	p := pool(t, at.addr())
	var all sync.WaitGroup
	for n := range callers {
		all.Go(func() {
			if n > 1 {
				<-met
			}
			for i := range rounds {
				b := byte('a' + n*rounds + i)
				if _, err := p.Call(ctx(t), "callee", "keep", peer.Raw{b}, bytes.Repeat([]byte{b}, size), nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
