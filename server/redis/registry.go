package redis

import (
	"cmp"
	"slices"
	"sync"
)

// registry knows every client by id, for CLIENT and for INFO.
type registry struct {
	mu     sync.Mutex
	byID   map[uint64]*conn
	lastID uint64
}

// add gives c its id, unless max clients are here already.
func (r *registry) add(c *conn, max int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if int64(len(r.byID)) >= max {
		return false
	}
	if r.byID == nil {
		r.byID = make(map[uint64]*conn)
	}
	r.lastID++
	c.id = r.lastID
	r.byID[c.id] = c
	return true
}

func (r *registry) remove(c *conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byID, c.id)
}

func (r *registry) get(id uint64) *conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byID[id]
}

func (r *registry) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.byID)
}

// all returns every client, oldest first.
func (r *registry) all() []*conn {
	r.mu.Lock()
	out := make([]*conn, 0, len(r.byID))
	for _, c := range r.byID {
		out = append(out, c)
	}
	r.mu.Unlock()
	slices.SortFunc(out, func(a, b *conn) int { return cmp.Compare(a.id, b.id) })
	return out
}
