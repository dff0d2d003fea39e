package call_test

import (
	"errors"
	"testing"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server/call"
)

// ground is a node that has everything, or nothing.
type ground call.Standing

func (g ground) Standing(record.Place) call.Standing { return call.Standing(g) }

// A call runs on its own after its door has seen that its key is here. If the key leaves and comes back meanwhile, the
// function must not be told that it is elsewhere: it would fail, or take it for absent.
func TestACallWhoseKeyWasAwayForAWhileIsRunAgain(t *testing.T) {
	w := newWorld(t, store.Options{})
	for i, away := range []int{0, 1, 5} {
		r := w.request("count", "n", longWork)
		r.Ground = ground(call.Here)
		r.Grounds = func() call.Ground {
			if away--; away >= 0 {
				return ground(call.Away)
			}
			return ground(call.Here)
		}
		if got, err := w.call(r); err != nil || len(got) != 8 || got[0] != byte(i+1) {
			t.Fatalf("call %d: %q, %v", i, got, err)
		}
	}
	r := w.request("count", "n", longWork)
	r.Ground, r.Grounds = ground(call.Here), func() call.Ground { return ground(call.Away) }
	if got, err := w.call(r); !errors.Is(err, call.ErrMoving) {
		t.Errorf("a key that does not come back: %q, %v", got, err)
	}
}
