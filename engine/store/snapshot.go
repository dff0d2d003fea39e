package store

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"

	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/record"
)

// A snapshot of the index spares recovery the replay of all segments that were
// closed when it began, its base: only the log's tail behind it is replayed.
// The base ends at one moment over all heads. Else a record could be in the tail
// and the tombstone that came after it in the base, where nobody reads it.
// The rest is taken while everything goes on, and need not be of one moment:
//
//   - what an entry says of the base was true at some time during the snapshot;
//   - what changed since the base was closed is in the tail, with a higher version,
//     or the same if it was only relocated;
//   - an entry of a base segment that is gone by now was relocated, replaced or
//     deleted, and the tail knows.
//
//	magic u64 | length u32, head as JSON | floors | entry* | zero entry | crc u32
//	entry: top 32 and lowest 10 bits of place, offset/8, flags (64 bits) | segment 24, table 8 (32 bits)

// SnapshotMeta is the metadata that holds the snapshot.
const SnapshotMeta = "index.snapshot"

const (
	snapshotMagic    = 0x31304e534f525453
	snapshotEntry    = 12
	unknownTable     = 255 // of a record that is cold, in a segment of several tables
	chunkTableNumber = 254
	completionNumber = 253
)

// snapshotHead describes the base.
type snapshotHead struct {
	Millis   int64             `json:"millis"`
	Next     record.SegmentID  `json:"next"` // no segment of the base has this id or a higher one
	ChunkIDs uint64            `json:"chunkIDs"`
	Ceiling  uint64            `json:"ceiling"`
	Tables   []record.TableID  `json:"tables"`
	Mean     []int64           `json:"meanBytes"` // of a record of each
	Segments []snapshotSegment `json:"segments"`
}

// snapshotSegment is a segment of the base.
type snapshotSegment struct {
	ID record.SegmentID `json:"id"`
	hlog.Summary
}

// writeSnapshot takes a snapshot of a logged store.
func (st *Store) writeSnapshot(ctx context.Context) error {
	base := st.log.Cut()
	if err := st.log.SyncAll(); err != nil {
		return err
	}
	w, err := st.newSnapshotWriter(base)
	if err != nil {
		return err
	}
	defer w.close()
	if err := w.head(); err != nil {
		return err
	}
	n := 0
	err = st.ix.Dump(func(place record.Place, a record.Address) error {
		if n++; n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		return w.entry(place, a)
	})
	if err != nil {
		return err
	}
	// A key that was seen in the tail is not in the snapshot, though the base may
	// hold an older record of it. So the tail must not be lost once this counts.
	st.log.SealAll()
	if err := st.log.SyncAll(); err != nil {
		return err
	}
	return w.commit()
}

// snapshotWriter writes a snapshot to a stream.
type snapshotWriter struct {
	st     *Store
	ss     *Session
	out    *bufio.Writer
	sum    hash.Hash32
	stream interface {
		io.WriteCloser
		Commit() error
	}
	base   map[uint32]baseSegment // by slot
	tables map[record.TableID]uint8
	info   snapshotHead
}

type baseSegment struct {
	seg    *hlog.Segment
	number uint32
	sum    hlog.Summary
}

func (st *Store) newSnapshotWriter(base []*hlog.Segment) (*snapshotWriter, error) {
	stream, err := st.dev.CreateStream(SnapshotMeta)
	if err != nil {
		return nil, err
	}
	ss, err := st.NewSession()
	if err != nil {
		stream.Close()
		return nil, err
	}
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	w := &snapshotWriter{
		st: st, ss: ss, sum: sum, stream: stream, out: bufio.NewWriterSize(io.MultiWriter(stream, sum), 1<<20),
		base: map[uint32]baseSegment{}, tables: map[record.TableID]uint8{chunkTable: chunkTableNumber, completionTable: completionNumber},
	}
	w.describe(base)
	return w, nil
}

func (w *snapshotWriter) close() {
	w.ss.Close()
	w.stream.Close()
}

// describe fixes what belongs to the base: the segments given, but for those
// that were cleaned away meanwhile.
func (w *snapshotWriter) describe(base []*hlog.Segment) {
	w.ss.guard.Enter()
	defer w.ss.guard.Leave()
	w.info = snapshotHead{Millis: w.st.opts.Now(), Next: w.st.log.NextID(), ChunkIDs: w.st.chunkIDs.Load(), Ceiling: w.st.Ceiling()}
	for t := range w.st.tables.all() {
		n := len(w.info.Tables)
		if keys, _ := t.sum(); keys > 0 && n < completionNumber { // Records of others are of unknown tables.
			w.tables[t.id] = uint8(n)
			w.info.Tables = append(w.info.Tables, t.id)
			w.info.Mean = append(w.info.Mean, t.bytes()/keys)
		}
	}
	for _, s := range base {
		if w.st.log.ByID(s.ID) != s {
			continue
		}
		sum := w.st.log.Summarize(s)
		w.base[s.Slot] = baseSegment{s, uint32(len(w.info.Segments)), sum}
		w.info.Segments = append(w.info.Segments, snapshotSegment{s.ID, sum})
	}
}

func (w *snapshotWriter) head() error {
	b, err := json.Marshal(w.info)
	if err != nil {
		return err
	}
	h := binary.LittleEndian.AppendUint64(nil, snapshotMagic)
	h = binary.LittleEndian.AppendUint32(h, uint32(len(b)))
	h = append(h, b...)
	for i := range w.st.floors {
		h = binary.LittleEndian.AppendUint64(h, w.st.floors[i].Load())
	}
	_, err = w.out.Write(h)
	return err
}

// entry writes an entry of the base; those of the tail are replayed.
func (w *snapshotWriter) entry(place record.Place, a record.Address) error {
	w.ss.guard.Enter()
	defer w.ss.guard.Leave()
	b, ok := w.base[a.Slot()]
	if !ok || w.st.log.Segment(a.Slot()) != b.seg {
		return nil
	}
	table, expires := w.kind(a, b)
	var e [snapshotEntry]byte
	packed := uint64(place)&^(1<<32-1) | uint64(place)&1023<<22 | uint64(a.Offset()/8)<<2 | uint64(b2i(expires))<<1 | 1
	binary.LittleEndian.PutUint64(e[:], packed)
	binary.LittleEndian.PutUint32(e[8:], b.number<<8|uint32(table))
	_, err := w.out.Write(e[:])
	return err
}

// kind tells what counts of a record: its table, and whether it expires.
func (w *snapshotWriter) kind(a record.Address, b baseSegment) (table uint8, expires bool) {
	id := b.sum.Table
	if p, ok := w.st.log.Entry(a); ok {
		id, expires = p.Table(), p.HasExpiry()
	} else if b.sum.Mixed {
		return unknownTable, false
	}
	n, ok := w.tables[id]
	if !ok {
		return unknownTable, false
	}
	return n, expires
}

func (w *snapshotWriter) commit() error {
	if _, err := w.out.Write(make([]byte, snapshotEntry)); err != nil {
		return err
	}
	if err := w.out.Flush(); err != nil {
		return err
	}
	if _, err := w.stream.Write(binary.LittleEndian.AppendUint32(nil, w.sum.Sum32())); err != nil {
		return err
	}
	return w.stream.Commit()
}

// snapshot is what a former life left.
type snapshot struct {
	snapshotHead
	floors  []byte
	entries []byte
}

var errSnapshot = errors.New("it is damaged")

// readSnapshot reads the last snapshot; nil if there is none that is whole.
func (st *Store) readSnapshot() *snapshot {
	r, err := st.dev.OpenStream(SnapshotMeta)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		defer r.Close()
		var b []byte
		if b, err = io.ReadAll(r); err == nil {
			var s *snapshot
			if s, err = parseSnapshot(b); err == nil {
				return s
			}
		}
	}
	st.opts.Logger.Warn("the snapshot of the index is of no use: all segments are replayed", "error", err)
	return nil
}

// CheckSnapshot tells whether b, all of SnapshotMeta, is a snapshot that is whole.
func CheckSnapshot(b []byte) error {
	_, err := parseSnapshot(b)
	return err
}

func parseSnapshot(b []byte) (*snapshot, error) {
	const fixed = 8 + 4
	if len(b) < fixed+8*floorStripes+snapshotEntry+4 {
		return nil, errSnapshot
	}
	body, sum := b[:len(b)-4], binary.LittleEndian.Uint32(b[len(b)-4:])
	if crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)) != sum || binary.LittleEndian.Uint64(b) != snapshotMagic {
		return nil, errSnapshot
	}
	n := uint64(binary.LittleEndian.Uint32(b[8:]))
	if fixed+n+8*floorStripes > uint64(len(body)) {
		return nil, errSnapshot
	}
	s := &snapshot{floors: body[fixed+n:][:8*floorStripes], entries: body[fixed+n+8*floorStripes:]}
	if err := json.Unmarshal(b[fixed:fixed+n], &s.snapshotHead); err != nil {
		return nil, fmt.Errorf("%w: %w", errSnapshot, err)
	}
	return s, nil
}
