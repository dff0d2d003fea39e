package migrate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/store"
)

// methodSent is the one call that a source makes: its cleaner has come to records that are the target's.
const methodSent = "migrate.sent"

// sendPatience is how long a target has to make what it was sent as safe as any write.
const sendPatience = 10 * time.Second

// Send gives records to the target of a migration from this node. When it returns without an error, the target has them
// for good: they are in all copies of its log, or what took their place there is.
func Send(ctx context.Context, peers *peer.Pool, to view.NodeID, id ID, p store.Parcel) error {
	ctx, cancel := context.WithTimeout(ctx, sendPatience)
	defer cancel()
	bulk := make([]byte, len(p.Entries), len(p.Entries)+len(p.At)*indirectionBytes)
	copy(bulk, p.Entries)
	for _, i := range p.At {
		bulk = appendIndirection(bulk, i)
	}
	_, err := peers.Call(ctx, to, methodSent, sentHead{ID: id, Count: len(p.At)}, bulk, nil)
	return err
}

// sentHead is the head of methodSent. The bulk is entries, and then where each lies at the source.
type sentHead struct {
	ID    ID  `json:"id"`
	Count int `json:"count"`
}

// HandleSent answers sources that send records to this node; driver is what drives migrations here now, or nil.
func HandleSent(to *peer.Server, driver func() *Driver) {
	to.Handle(methodSent, func(ctx context.Context, c *peer.Call) (any, []byte, error) {
		var head sentHead
		if err := c.Bind(&head); err != nil {
			return nil, nil, err
		}
		if head.Count < 0 || head.Count > len(c.Bulk)/indirectionBytes {
			return nil, nil, fmt.Errorf("%w: %d records in %d bytes", peer.ErrMalformed, head.Count, len(c.Bulk))
		}
		entries, at, err := (&pulled{Cold: uint32(head.Count)}).split(c.Bulk)
		if err != nil {
			return nil, nil, err
		}
		d := driver()
		if d == nil {
			return nil, nil, errNotSettling
		}
		return nil, nil, d.receive(ctx, head.ID, c.From, store.Parcel{Entries: entries, At: at})
	})
}

var errNotSettling = errors.New("the migration does not settle: what its source has is not taken now")

// receiving lets what sources send in, until the move does something that must know of all of it.
type receiving struct {
	mu   sync.RWMutex // held for reading by who receives
	over bool
}

// end returns when nothing is received any more, nor will be.
func (r *receiving) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
}

// receive takes what the cleaner of a source has sent, and returns when it is safe here.
func (d *Driver) receive(ctx context.Context, id ID, from view.NodeID, p store.Parcel) error {
	d.mu.Lock()
	m := d.moves[id]
	d.mu.Unlock()
	if m == nil {
		return errNotSettling
	}
	m.receiving.mu.RLock()
	defer m.receiving.mu.RUnlock()
	now := d.o.Cache.Snapshot().Migrations[id]
	a := m.knows.Load()
	if m.receiving.over || a == nil || *m.now.Load() != settling || !a.AllPulled() || now.Stage != meta.Moving || now.Source != from {
		return errNotSettling
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(m.ends, cancel)() // Who stops waits for it.
	return m.take(ctx, a, p)
}

// take imports records, and makes them safe: also those that had come on another way, to a side segment without copies.
func (m *move) take(ctx context.Context, a *store.Arrival, p store.Parcel) error {
	w, err := a.NewWorker()
	if err != nil {
		return err
	}
	err = w.Import(ctx, p.Entries)
	if err == nil {
		var n int64
		n, err = w.ResolvedAt(p.At)
		m.cold.sent.Add(n)
		m.records.Add(n)
		m.bytes.Add(int64(len(p.Entries)))
	}
	w.Close()
	if err != nil {
		return err
	}
	return a.Flush(ctx)
}
