package store

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"github.com/ostrodb/ostro/engine/record"
)

// settled remembers keys of which all up to some version is dead. The filter tells most of
// those who ask that a key is not among them, without a lock.
type settled struct {
	bytes  atomic.Int64 // about how much memory the names take
	filter [settledWords]atomic.Uint64
	shards [settledShards]settledShard
}

type settledShard struct {
	mu    sync.Mutex
	until map[string]uint64
}

const (
	settledWords   = 4096
	settledShards  = 64
	settledBuckets = 1024
	settledEntry   = 48 // what a map takes for an entry, about, beside its name
)

func newSettled() *settled { return new(settled) }

// size is about how much memory it takes; an arrival that is only expected asks for nothing, and has none for that.
func (s *settled) size() int64 {
	if s == nil {
		return 0
	}
	return s.bytes.Load()
}

// bit gives the bit of the filter that a place has. It is made of what an index knows of a place, and places of one bucket, which pulls
// bring one after the other, lie together.
func (s *settled) bit(p record.Place) (word *atomic.Uint64, mask uint64) {
	h := uint64(p>>32) * 0x9E3779B97F4A7C15 >> 56
	return &s.filter[uint64(p)%settledBuckets*settledWords/settledBuckets+h>>6], 1 << (h & 63)
}

func (s *settled) shard(p record.Place) *settledShard { return &s.shards[uint64(p)%settledShards] }

// note settles a key up to a version.
func (s *settled) note(k *Key, ver uint64) {
	shard := s.shard(k.Place)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if shard.until == nil {
		shard.until = map[string]uint64{}
	}
	var buf [settledName]byte
	name := settledNameOf(k, &buf)
	was, there := shard.until[string(name)]
	if was < ver {
		shard.until[string(name)] = ver
	}
	if !there {
		s.bytes.Add(int64(len(name) + settledEntry))
	}
	word, mask := s.bit(k.Place)
	word.Or(mask)
}

// may tells whether a key of a place may be settled.
func (s *settled) may(p record.Place) bool {
	word, mask := s.bit(p)
	return word.Load()&mask != 0
}

// until gives the version up to which all of a key is dead; 0 if it is not settled.
func (s *settled) until(k *Key) uint64 {
	if !s.may(k.Place) {
		return 0
	}
	shard := s.shard(k.Place)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	var buf [settledName]byte
	return shard.until[string(settledNameOf(k, &buf))]
}

// settledName is the length of names that need no memory of their own.
const settledName = 128

func settledNameOf(k *Key, buf *[settledName]byte) []byte {
	return append(binary.LittleEndian.AppendUint32(buf[:0], uint32(k.Table)), k.Bytes...)
}

// Settle says that the source was asked for keys, and all that it has of them was imported:
// those that are not there do not exist.
func (a *Arrival) Settle(keys ...ArrivingKey) {
	for _, k := range keys {
		a.asked.note(&Key{Place: k.Place, Table: k.Table, Bytes: k.Bytes}, a.ceiling+1)
	}
}

// Settled tells whether nothing of a key is still to come: the source was asked for it, or it was removed here.
func (a *Arrival) Settled(k ArrivingKey) bool {
	return a.knows(&Key{Place: k.Place, Table: k.Table, Bytes: k.Bytes})
}

// Awaits tells whether something of a key may still come, so that who needs it waits.
func (a *Arrival) Awaits(k ArrivingKey) bool {
	return a.waiting.meets(Range{k.Place, k.Place}) && !a.Settled(k)
}

// knows tells whether a key that is not there is known not to exist. What the log says of
// versions that the source may have reached is of an earlier life of the place, and of
// no use here.
func (a *Arrival) knows(k *Key) bool {
	return a.asked.until(k) > a.ceiling || a.removed.until(k) > a.ceiling
}

// dead tells whether an entry of this version that is imported comes too late.
func (as *arrivals) dead(k *Key, ver uint64) bool {
	for _, a := range as.list() {
		if a.owns(k.Place) && a.dead(k, ver) {
			return true
		}
	}
	return false
}

// dead is that of arrivals for an entry of this one's places.
func (a *Arrival) dead(k *Key, ver uint64) bool {
	return a.removed.may(k.Place) && k.Table != chunkTable && k.Table != completionTable && a.removed.until(k) >= ver
}

// settle settles a key that is removed by a deletion of version ver.
func (as *arrivals) settle(k *Key, ver uint64) {
	for _, a := range as.list() {
		if a.owns(k.Place) {
			a.removed.note(k, ver)
		}
	}
}

// following is the version that follows ver of a key that is about to be written or removed.
func (st *Store) following(k *Key, ver uint64) uint64 {
	if !st.arriving.any() && !st.departs.any() {
		return ver + 1
	}
	st.departs.note(k)
	return st.arriving.following(k.Place, ver)
}

// following is the version that follows ver: where records arrive, one above all that the
// source gave.
func (as *arrivals) following(p record.Place, ver uint64) uint64 {
	ver++
	for _, a := range as.list() {
		if a.owns(p) {
			ver = max(ver, a.ceiling+1)
		}
	}
	return ver
}
