package migrate

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/store"
)

// generous is a source that has something to send whatever it is asked.
type generous struct {
	given
	changed []store.ArrivingKey
}

func (g generous) Sample(_ context.Context, _ ID, _ view.NodeID, begun func(view.Ranges) error) error {
	return begun(g.m.Ranges)
}

func (g generous) Changes(context.Context, ID, view.NodeID, uint64, bool) (meta.Migration, []store.ArrivingKey, error) {
	return g.m, g.changed, nil
}

// A node that stops, or begins another log, closes its shelf, and its clients have nobody until it is back.
func TestAShelfThatClosesWaitsForNoTargetThatDoesNotRead(t *testing.T) {
	for method, ask := range map[string]any{
		methodSample:   transfer{ID: 1},
		methodTransfer: transfer{ID: 1},
		methodChanges:  changes{ID: 1},
	} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, _ := sourceWithResults(t, 10)
				ss := session(t, st)
				key := ss.Key(0, []byte("key1"))
				changed := []store.ArrivingKey{{Place: key.Place, Bytes: key.Bytes}}
				var shelf *Shelf
				m := moveApart(t, st, func(s *Source, to *peer.Server) {
					g := generous{s.origin.(given), changed}
					shelf = g.shelf
					NewSource(g).Handle(to)
				}, (*peer.Server).ServeConn)
				stream, err := m.o.Peers.Stream(t.Context(), "source", method, ask)
				check(t, err)
				defer stream.Close()
				synctest.Wait() // The first part is being sent.
				began := time.Now()
				shelf.Close()
				if took := time.Since(began); took > 0 { // Of the bubble's clock.
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}
