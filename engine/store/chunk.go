package store

import (
	"encoding/binary"
	"fmt"

	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// A value that is large for a segment is cut into chunks, records of a table
// of their own:
//
//	record   key -> total u64, id u64, chunk bytes u32        (flag: chunked)
//	chunk    id u64, number u32 -> key length u16, key, table u32, bytes
//
// A chunk lies in its key's slot, so it moves with it. It is written before
// the record, and it is alive as long as the record names its id: the cleaner
// looks there, for after a crash chunks may be left of a record that never was.

const manifestBytes = 20

// chunkBytes is the largest piece of a value.
func (st *Store) chunkBytes() int { return st.opts.SegmentBytes / 32 }

// manifest is the value of a chunked record.
type manifest struct {
	total uint64
	id    uint64
	piece uint32
}

func (m manifest) encode(b []byte) {
	binary.LittleEndian.PutUint64(b, m.total)
	binary.LittleEndian.PutUint64(b[8:], m.id)
	binary.LittleEndian.PutUint32(b[16:], m.piece)
}

// decodeManifest reads a manifest; ok is false if b is none.
func decodeManifest(b []byte) (m manifest, ok bool) {
	if len(b) != manifestBytes {
		return m, false
	}
	m = manifest{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint32(b[16:])}
	return m, m.piece > 0 && m.total <= MaxValueBytes
}

func (m manifest) chunks() int { return int((m.total + uint64(m.piece) - 1) / uint64(m.piece)) }

// chunkKey names chunk n, in the slot of its record.
func chunkKey(place record.Place, id uint64, n int, buf *[12]byte) Key {
	binary.LittleEndian.PutUint64(buf[:], id)
	binary.LittleEndian.PutUint32(buf[8:], uint32(n))
	return Key{Place: chunkPlace(place, buf[:]), Table: chunkTable, Bytes: buf[:], in: &noTable}
}

// chunkPlace keeps the slot of the record's place.
func chunkPlace(place record.Place, chunk []byte) record.Place {
	const slotMask = ^record.Place(1<<50 - 1)
	return place&slotMask | record.PlaceOf(chunkTable, chunk)&^slotMask
}

// noTable takes the counts of chunks, which are no keys.
var noTable = table{counts: make([]tableCount, 64)}

// putLarge writes the chunks of a value, then its record.
func (ss *Session) putLarge(k *Key, e entry, expect *View) Status {
	defer ss.chunking.Store(0)
	if st := ss.writeChunks(k, &e); st != OK {
		return st
	}
	st := ss.put(k, &e, expect)
	if st != OK {
		ss.dropChunks(k.Place, e.value)
	}
	return st
}

// writeChunks cuts e's value into chunks and leaves the manifest in it.
func (ss *Session) writeChunks(k *Key, e *entry) Status {
	m := manifest{total: uint64(len(e.value)), id: ss.st.chunkIDs.Add(1), piece: uint32(ss.st.chunkBytes())}
	ss.chunking.CompareAndSwap(0, m.id)
	body := make([]byte, 0, 2+len(k.Bytes)+4+int(m.piece))
	for n := range m.chunks() {
		from := n * int(m.piece)
		body = binary.LittleEndian.AppendUint16(body[:0], uint16(len(k.Bytes)))
		body = append(body, k.Bytes...)
		body = binary.LittleEndian.AppendUint32(body, uint32(k.Table))
		body = append(body, e.value[from:min(from+int(m.piece), len(e.value))]...)
		var buf [12]byte
		ck := chunkKey(k.Place, m.id, n, &buf)
		ce := entry{Header: record.Header{Type: record.TypePut, Table: chunkTable}, value: body}
		if st := ss.putChunk(&ck, &ce); st != OK {
			m.total = uint64(from)
			e.value = ss.arena.alloc(manifestBytes)
			m.encode(e.value)
			ss.dropChunks(k.Place, e.value)
			return st
		}
		ss.sealChunks()
	}
	e.value = ss.arena.alloc(manifestBytes)
	m.encode(e.value)
	e.Chunked = true
	return OK
}

// beingWritten tells whether p is a chunk of a value whose record is still to
// come: its id is not below that of the oldest value under way.
func (st *Store) beingWritten(p record.Ptr) bool {
	if p.Table() != chunkTable {
		return false
	}
	id := binary.LittleEndian.Uint64(p.Key())
	st.mu.Lock()
	defer st.mu.Unlock()
	for ss := range st.open {
		if first := ss.chunking.Load(); first != 0 && first <= id {
			return true
		}
	}
	return false
}

// putChunk writes a chunk. A large value may need more memory than is free at
// once; so, outside of transactions, the session steps out of its guard to
// wait for it. Large values are never views into the log.
func (ss *Session) putChunk(k *Key, e *entry) Status {
	for {
		st := ss.put(k, e, nil)
		if st != Cold || !ss.noRoom || ss.tx.open {
			return st
		}
		ss.noRoom = false
		ss.guard.Leave()
		ss.st.awaitRoom()
		ss.guard.Enter()
	}
}

// sealChunks ends a batch, so that the batch with the record does not carry
// all chunks.
func (ss *Session) sealChunks() {
	ss.head.Lock()
	ss.head.Seal()
	ss.head.Unlock()
}

// chunkBody splits a chunk's value into the key it belongs to and the bytes.
func chunkBody(v []byte) (key []byte, t record.TableID, body []byte, ok bool) {
	if len(v) < 6 {
		return nil, 0, nil, false
	}
	n := int(binary.LittleEndian.Uint16(v))
	if len(v) < 6+n {
		return nil, 0, nil, false
	}
	return v[2 : 2+n], record.TableID(binary.LittleEndian.Uint32(v[2+n:])), v[6+n:], true
}

// assemble reads the chunks of the record p.
func (ss *Session) assemble(v View, p record.Ptr) (View, Status) {
	return ss.assembleKey(v, p.Value(), record.PlaceOf(p.Table(), p.Key()))
}

// assembleFrom is assemble for a manifest that was copied.
func (ss *Session) assembleFrom(v View, manifest []byte) (View, Status) {
	p, ok := ss.entry(v.at)
	if !ok {
		return View{}, Conflict
	}
	return ss.assembleKey(v, manifest, record.PlaceOf(p.Table(), p.Key()))
}

func (ss *Session) assembleKey(v View, b []byte, place record.Place) (View, Status) {
	m, ok := decodeManifest(b)
	if !ok {
		return v, ss.fail(fmt.Errorf("a large value's record is damaged"))
	}
	if st := ss.haveChunks(m, place); st != OK {
		return v, st
	}
	v.Value = make([]byte, 0, m.total)
	for n := range m.chunks() {
		var buf [12]byte
		k := chunkKey(place, m.id, n, &buf)
		c, st := ss.Get(&k)
		_, _, body, ok := chunkBody(c.Value)
		if st != OK || !ok {
			return v, Conflict // Replaced meanwhile: its chunks went first.
		}
		v.Value = append(v.Value, body...)
	}
	return v, OK
}

// haveChunks notes all chunks that must be fetched, so that they come at once.
func (ss *Session) haveChunks(m manifest, place record.Place) Status {
	all := OK
	for n := range m.chunks() {
		var buf [12]byte
		var pr index.Probe
		k := chunkKey(place, m.id, n, &buf)
		switch _, st := ss.find(&k, &pr); st {
		case Cold:
			all = Cold
		case NotFound:
			return Conflict
		}
	}
	return all
}
