package store

import (
	"cmp"
	"encoding/binary"
	"fmt"

	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// A value that is large for a segment is cut into chunks, records of a table
// of their own:
//
//	record   key -> total u64, id u64, chunk bytes u32, log u64        (flag: chunked)
//	chunk    id u64, number u32, log u64 -> key length u16, key, table u32, bytes
//
// A chunk lies in its key's slot, so it moves with it. It is written before
// the record, and it is alive as long as the record names its value: the cleaner
// looks there, for after a crash chunks may be left of a record that never was.
//
// The log is the one that the value was written to first. Ids are that log's, and
// those of each life are above those of all before, so no two values have the same
// name, wherever they are imported. A store in memory has no log id; there, and in
// files from before it was written, it is left out.

const (
	manifestBytes = 28
	chunkKeyBytes = 20
	logNameBytes  = 8 // less, if the log is left out
)

// valueName names a large value in all logs.
type valueName struct {
	log record.LogID
	id  uint64
}

func (v valueName) compare(o valueName) int {
	return cmp.Or(cmp.Compare(v.log, o.log), cmp.Compare(v.id, o.id))
}

// chunkOf reads the name of a chunk.
func chunkOf(key []byte) (of valueName, ok bool) {
	if len(key) != chunkKeyBytes && len(key) != chunkKeyBytes-logNameBytes {
		return of, false
	}
	of.id = binary.LittleEndian.Uint64(key)
	if len(key) == chunkKeyBytes {
		of.log = record.LogID(binary.LittleEndian.Uint64(key[12:]))
	}
	return of, true
}

// chunkBytes is the largest piece of a value.
func (st *Store) chunkBytes() int { return st.opts.SegmentBytes / 32 }

// manifest is the value of a chunked record.
type manifest struct {
	total uint64
	of    valueName
	piece uint32
}

// encode makes the value of the record.
func (m manifest) encode(a *arena) []byte {
	b := a.alloc(manifestBytes)
	binary.LittleEndian.PutUint64(b, m.total)
	binary.LittleEndian.PutUint64(b[8:], m.of.id)
	binary.LittleEndian.PutUint32(b[16:], m.piece)
	if m.of.log == 0 {
		return b[:manifestBytes-logNameBytes]
	}
	binary.LittleEndian.PutUint64(b[20:], uint64(m.of.log))
	return b
}

// decodeManifest reads a manifest; ok is false if b is none.
func decodeManifest(b []byte) (m manifest, ok bool) {
	if len(b) != manifestBytes && len(b) != manifestBytes-logNameBytes {
		return m, false
	}
	m.total, m.piece = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint32(b[16:])
	m.of.id = binary.LittleEndian.Uint64(b[8:])
	if len(b) == manifestBytes {
		m.of.log = record.LogID(binary.LittleEndian.Uint64(b[20:]))
	}
	return m, m.piece > 0 && m.total <= MaxValueBytes
}

// chunkedBytes is how long a value is that is kept as chunks.
func chunkedBytes(manifest []byte) int {
	m, _ := decodeManifest(manifest)
	return int(m.total)
}

func (m manifest) chunks() int { return int((m.total + uint64(m.piece) - 1) / uint64(m.piece)) }

// chunkKey names chunk n, in the slot of its record.
func chunkKey(place record.Place, of valueName, n int, buf *[chunkKeyBytes]byte) Key {
	binary.LittleEndian.PutUint64(buf[:], of.id)
	binary.LittleEndian.PutUint32(buf[8:], uint32(n))
	binary.LittleEndian.PutUint64(buf[12:], uint64(of.log))
	b := buf[:]
	if of.log == 0 {
		b = buf[:chunkKeyBytes-logNameBytes]
	}
	return Key{Place: chunkPlace(place, b), Table: chunkTable, Bytes: b, in: &noTable}
}

// chunkPlace keeps the slot of the record's place.
func chunkPlace(place record.Place, chunk []byte) record.Place {
	return inSlotOf(place, record.PlaceOf(chunkTable, chunk))
}

// inSlotOf moves a place to the slot of another.
func inSlotOf(slot, p record.Place) record.Place { return slot&^slotRest | p&slotRest }

const (
	placeHashBits = 50
	slotRest      = record.Place(1<<placeHashBits - 1) // what of a place is not its slot
)

// noTable takes the counts of chunks, which are no keys.
var noTable = table{counts: make([]tableCount, 64)}

// putLarge writes the chunks of a value, then its record.
func (ss *Session) putLarge(k *Key, e entry, expect *View) Status {
	if !ss.roomFor(len(e.value)) {
		return Cold
	}
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
	m := manifest{total: uint64(len(e.value)), of: valueName{ss.st.opts.LogID, ss.st.chunkIDs.Add(1)}, piece: uint32(ss.st.chunkBytes())}
	ss.chunking.CompareAndSwap(0, m.of.id)
	body := make([]byte, 0, 2+len(k.Bytes)+4+int(m.piece))
	for n := range m.chunks() {
		from := n * int(m.piece)
		body = binary.LittleEndian.AppendUint16(body[:0], uint16(len(k.Bytes)))
		body = append(body, k.Bytes...)
		body = binary.LittleEndian.AppendUint32(body, uint32(k.Table))
		body = append(body, e.value[from:min(from+int(m.piece), len(e.value))]...)
		var buf [chunkKeyBytes]byte
		ck := chunkKey(k.Place, m.of, n, &buf)
		ce := entry{Header: record.Header{Type: record.TypePut, Table: chunkTable}, value: body}
		if st := ss.putChunk(&ck, &ce, len(e.value)); st != OK {
			m.total = uint64(from)
			e.value = m.encode(&ss.arena)
			ss.dropChunks(k.Place, e.value)
			return st
		}
		ss.sealChunks()
	}
	e.value = m.encode(&ss.arena)
	e.Chunked = true
	return OK
}

// beingWritten tells whether p is a chunk of a value whose record is still to
// come: its id is not below that of the oldest value under way. While a log is
// imported, any may be, and while places arrive any of theirs: this store may have
// named the value itself, before it gave the places away.
func (st *Store) beingWritten(p record.Ptr) bool {
	if p.Table() != chunkTable {
		return false
	}
	if st.imports.any() {
		return true // It may be an imported one.
	}
	if st.arrivesWith(p) {
		return true
	}
	of, _ := chunkOf(p.Key())
	if of.log != st.opts.LogID {
		return false
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	for ss := range st.open {
		if first := ss.chunking.Load(); first != 0 && first <= of.id {
			return true
		}
	}
	return false
}

// segmentsFor is how many new segments a value may need.
func (st *Store) segmentsFor(bytes int) int { return bytes/(st.log.MaxEntry()-st.chunkBytes()) + 1 }

// roomFor tells whether the segments for a value are ready, if new ones must be
// open elsewhere: a worker does not wait for that. Else the operation waits for
// them. It does not look for more than are ever ready at once; see putChunk.
func (ss *Session) roomFor(bytes int) bool {
	log := ss.st.log
	n := ss.st.segmentsFor(bytes)
	if ss.st.opts.Replicator == nil || n > log.MostSpares() || log.Spares() >= n || log.Err() != nil {
		return true
	}
	ss.fail(hlog.ErrNoRoom)
	ss.roomWanted = n
	return false
}

// putChunk writes a chunk. A large value may need more memory than is free at
// once; so, outside of transactions, the session steps out of its guard to
// wait for it. Large values are never views into the log.
//
// If that would be to wait for others, and the whole value fits what is ready at
// some time, the operation waits for that instead, and begins anew.
func (ss *Session) putChunk(k *Key, e *entry, of int) Status {
	for {
		st := ss.put(k, e, nil)
		if st != Cold || !ss.noRoom || ss.tx.open {
			return st
		}
		if n := ss.st.segmentsFor(of); ss.st.opts.Replicator != nil && n <= ss.st.log.MostSpares() {
			ss.roomWanted = n
			return st
		}
		select {
		case <-ss.gone:
			return st
		default:
		}
		ss.noRoom = false
		ss.guard.Leave()
		ss.st.awaitRoom(1, ss.gone)
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
		var buf [chunkKeyBytes]byte
		k := chunkKey(place, m.of, n, &buf)
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
		var buf [chunkKeyBytes]byte
		var pr index.Probe
		k := chunkKey(place, m.of, n, &buf)
		switch _, st := ss.find(&k, &pr); st {
		case Cold:
			all = Cold
		case NotFound:
			return Conflict
		}
	}
	return all
}
