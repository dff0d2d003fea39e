package store

import (
	"context"
	"sync"

	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// doomed are large values that are gone but left chunks on disk. Somebody must
// read those to drop them: to the cleaner they look alive, so it would never
// come to their segments.
type doomed struct {
	mu     sync.Mutex
	values []doomedValue
}

type doomedValue struct {
	place record.Place // of the record
	manifest
}

func (d *doomed) add(v doomedValue) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.values = append(d.values, v)
}

func (d *doomed) take() []doomedValue {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := d.values
	d.values = nil
	return all
}

// dropChunks removes the chunks of a replaced or deleted record. Those that are
// not in memory are left to the sweeper.
func (ss *Session) dropChunks(place record.Place, b []byte) {
	m, ok := decodeManifest(b)
	if !ok {
		return
	}
	fetches, cold := len(ss.cold), false
	for n := range m.chunks() {
		var buf [chunkKeyBytes]byte
		k := chunkKey(place, m.of, n, &buf)
		cold = ss.dropChunk(&k) == Cold || cold
	}
	if cold {
		ss.cold = ss.cold[:fetches] // The operation itself need not wait for them.
		ss.st.doomed.add(doomedValue{place, m})
	}
}

func (ss *Session) dropChunk(k *Key) Status {
	var pr index.Probe
	for round := 0; ; round++ {
		p, st := ss.find(k, &pr)
		if st != OK {
			return st
		}
		at := pr.Address()
		if ss.st.ix.Remove(&pr) {
			ss.head.Died(at, uint32(p.Length()))
			return OK
		}
		yield(round)
	}
}

// dropDoomed reads and drops what is left of large values.
func (st *Store) dropDoomed(ctx context.Context, ss *Session) {
	for _, v := range st.doomed.take() {
		for n := range v.chunks() {
			var buf [chunkKeyBytes]byte
			k := chunkKey(v.place, v.of, n, &buf)
			if err := ss.dropCold(ctx, &k); err != nil {
				st.opts.Logger.Warn("a piece of a deleted value stays on disk", "error", err)
				return
			}
		}
	}
}

// dropCold drops a chunk, wherever it is.
func (ss *Session) dropCold(ctx context.Context, k *Key) error {
	for {
		ss.Begin()
		st := ss.dropChunk(k)
		ss.End()
		if st != Cold {
			return nil
		}
		if err := ss.Fetch(ctx); err != nil {
			return err
		}
	}
}
