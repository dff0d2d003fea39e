package bench

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/engine/record"
)

// slotOwners has for each slot which node owns it, by its number.
type slotOwners = [record.PlaceSlots]uint8

// roamMap reads the cluster's map anew for a client that was redirected: where one slot has moved others have, too, and to
// learn of each by its own redirection costs a request more for all of them. Clients in use do so as well, go-redis and
// Jedis among them.
type roamMap struct {
	addrs  []string
	ctls   []*control // to each node
	asked  chan int   // whose map is wanted
	news   atomic.Pointer[slotOwners]
	reader sync.WaitGroup
	last   time.Time // of the client's
}

// roamMapEvery is how long a client is content with a map that it has read: of a cluster whose slots move one by one each
// redirection would have it read another.
const roamMapEvery = 100 * time.Millisecond

func newRoamMap(addrs []string) (*roamMap, error) {
	m := &roamMap{addrs: addrs, asked: make(chan int, 1)}
	for _, addr := range addrs {
		ctl, err := dialControl(addr)
		if err != nil {
			m.close()
			return nil, err
		}
		m.ctls = append(m.ctls, ctl)
	}
	m.reader.Go(m.read)
	return m, nil
}

// read asks nodes for their maps. One that does not answer leaves the client to its redirections.
func (m *roamMap) read() {
	for node := range m.asked {
		if owner, err := ownersBy(m.ctls[node], m.addrs); err == nil {
			m.news.Store(&owner)
		}
	}
}

// want has the map of a node read, unless one is or was a moment ago.
func (m *roamMap) want(node int) {
	now := time.Now()
	if now.Sub(m.last) < roamMapEvery {
		return
	}
	select {
	case m.asked <- node:
		m.last = now
	default:
	}
}

func (m *roamMap) close() {
	close(m.asked)
	for _, ctl := range m.ctls {
		ctl.close()
	}
	m.reader.Wait()
}
