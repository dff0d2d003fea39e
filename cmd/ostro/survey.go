package main

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// dataDir is a data directory as its files show it, without a store. It only
// reads; repairs are in repair.go.
type dataDir struct {
	path     string
	segments []segmentFile // by id
	strays   []string      // files that no store of this version puts there
	temps    []string      // unfinished writes; harmless
	held     bool          // no server can use it
}

// segmentFile is one file of DIR/segments.
type segmentFile struct {
	id    record.SegmentID
	path  string
	bytes int64
}

const (
	segmentsFolder   = "segments"
	quarantineFolder = "quarantine"
	snapshotName     = "index.snapshot"
	segmentSuffix    = ".seg"
	tempSuffix       = ".tmp"
)

// openDataDir lists what is there.
func openDataDir(path string) (*dataDir, error) {
	d := &dataDir{path: path}
	entries, err := os.ReadDir(filepath.Join(path, segmentsFolder))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, usagef("%s is not a data directory: it has no folder called %s", path, segmentsFolder)
	case err != nil:
		return nil, fmt.Errorf("list segments: %w", err)
	}
	for _, e := range entries {
		if err := d.place(e); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(d.segments, func(a, b segmentFile) int { return cmp.Compare(a.id, b.id) })
	tops, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("list the data directory: %w", err)
	}
	for _, e := range tops {
		if strings.HasSuffix(e.Name(), tempSuffix) {
			d.temps = append(d.temps, filepath.Join(path, e.Name()))
		}
	}
	return d, nil
}

// place sorts one file of the segments folder.
func (d *dataDir) place(e fs.DirEntry) error {
	path := filepath.Join(d.path, segmentsFolder, e.Name())
	id, ok := parseSegmentName(e.Name())
	switch {
	case strings.HasSuffix(e.Name(), tempSuffix):
		d.temps = append(d.temps, path)
		return nil
	case !ok || !e.Type().IsRegular():
		d.strays = append(d.strays, path)
		return nil
	}
	info, err := e.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil // A running server cleaned it away.
	}
	if err != nil {
		return fmt.Errorf("look at %s: %w", path, err)
	}
	d.segments = append(d.segments, segmentFile{id: id, path: path, bytes: info.Size()})
	return nil
}

func parseSegmentName(name string) (record.SegmentID, bool) {
	digits, ok := strings.CutSuffix(name, segmentSuffix)
	n, err := strconv.ParseUint(digits, 16, 64)
	return record.SegmentID(n), ok && err == nil && len(digits) == 16
}

// totalBytes is the size of all segments.
func (d *dataDir) totalBytes() (sum int64) {
	for _, s := range d.segments {
		sum += s.bytes
	}
	return sum
}

// inUse tells which process has the directory; nothing if none does.
func (d *dataDir) inUse() string {
	f, err := os.Open(filepath.Join(d.path, "LOCK"))
	if err != nil {
		return ""
	}
	defer f.Close() // which also gives up the lock
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
		return ""
	}
	var text [20]byte
	n, _ := f.Read(text[:])
	return "process " + cmp.Or(strings.TrimSpace(string(text[:n])), "unknown")
}

// tablesFile is DIR/tables.json: which table each database has. Records of
// other tables were flushed.
type tablesFile struct {
	Next record.TableID   `json:"next"`
	DB   []record.TableID `json:"databases"`
}

// checkpointFile is DIR/checkpoint.json: the segments that count under
// durability none and checkpoint. The next start removes all others.
type checkpointFile struct {
	Millis   int64              `json:"millis"`
	Segments []record.SegmentID `json:"segments"`
}

// identityFile is DIR/identity.json: what the directory is for ever.
type identityFile struct {
	Log          record.LogID `json:"log"`
	SegmentBytes int          `json:"segmentBytes"`
}

// readMeta decodes a file of the directory; false if it is not there.
func (d *dataDir) readMeta(name string, into any) (bool, error) {
	text, err := os.ReadFile(filepath.Join(d.path, name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read %s: %w", name, err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return false, fmt.Errorf("%s is damaged: %w", name, err)
	}
	return true, nil
}

// readTables reads the map; nil if there is none, which means that database n has
// table n.
func (d *dataDir) readTables() (*tablesFile, error) {
	t := new(tablesFile)
	if found, err := d.readMeta("tables.json", t); !found {
		return nil, err
	}
	return t, nil
}

// readCheckpoint reads the manifest; nil if all segments count.
func (d *dataDir) readCheckpoint() (*checkpointFile, error) {
	c := new(checkpointFile)
	if found, err := d.readMeta("checkpoint.json", c); !found {
		return nil, err
	}
	return c, nil
}

// database returns which database a table is, or -1 if it was flushed.
func (t *tablesFile) database(id record.TableID) int {
	if t == nil {
		return int(id)
	}
	return slices.Index(t.DB, id)
}

// snapshotWhole tells whether the snapshot of the index, if there is one, ends
// in the checksum of all that stands before it.
func (d *dataDir) snapshotWhole() error {
	b, err := os.ReadFile(filepath.Join(d.path, snapshotName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("read the snapshot of the index: %w", err)
	case len(b) < 4 || crc32.Checksum(b[:len(b)-4], crc32.MakeTable(crc32.Castagnoli)) != binary.LittleEndian.Uint32(b[len(b)-4:]):
		return errors.New("the snapshot of the index does not match its checksum")
	}
	return nil
}

// segmentState is what a scan makes of a segment.
type segmentState string

const (
	stateClosed  segmentState = "closed"  // whole and finished
	stateOpen    segmentState = "open"    // whole so far; its head was open when the process ended
	stateTorn    segmentState = "torn"    // open, and a batch at its end did not arrive whole: never acknowledged
	stateAhead   segmentState = "ahead"   // ends in batches that do not count: others that came before them are missing
	stateUnused  segmentState = "unused"  // prepared, nothing written yet
	stateCorrupt segmentState = "corrupt" // bytes that were safe are damaged
	stateFormat  segmentState = "foreign" // written by another version of Ostro
	stateStale   segmentState = "stale"   // no part of the checkpoint: the next start removes it
)

// segmentReport is all that a scan tells of one segment.
type segmentReport struct {
	ID        record.SegmentID `json:"id"`
	Path      string           `json:"path"`
	State     segmentState     `json:"state"`
	Created   time.Time        `json:"created,omitzero"`
	Log       record.LogID     `json:"log"`
	FileBytes int64            `json:"fileBytes"`
	UsedBytes int              `json:"usedBytes"` // up to the last good seal
	LostBytes int              `json:"lostBytes"` // beyond it
	// SealsBeyond counts what looks like seals beyond the last good one. A torn
	// batch has none, because a batch is sealed only once it is whole.
	SealsBeyond int `json:"sealsBeyond"`
	Entries     int `json:"entries"`
	Batches     int `json:"batches"` // that is, seals
	// LastBatch is the number of the last good one. Dropped counts those behind
	// it that do not count, because a batch before them is missing.
	LastBatch record.BatchID `json:"lastBatch"`
	Dropped   int            `json:"dropped"`

	Puts       int   `json:"puts"`
	Tombstones int   `json:"tombstones"`
	LiveBytes  int64 `json:"liveBytes"` // of records that are their key's newest

	Problem string `json:"problem,omitempty"`

	extent record.Extent
	cut    bool // the file is as long as the segment: all batches up to its last were synced
}

// Live is the part of the used bytes that is alive, 0 to 1.
func (r *segmentReport) Live() float64 {
	if r.UsedBytes == 0 {
		return 0
	}
	return float64(r.LiveBytes) / float64(r.UsedBytes)
}

// scanSegment reads and verifies one file: header, every entry's checksum, and
// the chain of seals. The bytes are good up to UsedBytes.
func scanSegment(f segmentFile) (segmentReport, []byte, error) {
	r := segmentReport{ID: f.id, Path: f.path, FileBytes: f.bytes}
	b, err := os.ReadFile(f.path)
	if err != nil {
		return r, nil, fmt.Errorf("read segment %d: %w", f.id, err)
	}
	size := len(b)
	if info, err := record.DecodeSegmentHeader(b); err == nil {
		r.Created, r.Log = time.UnixMilli(info.CreatedMillis).UTC(), info.Log
		size = int(info.SegmentBytes)
	}
	// A file is cut at its end once its segment is closed and synced: damage in a
	// shorter one is no torn write.
	r.cut = len(b) < size || record.IsClosingSeal(lastSeal(b))
	ext, err := record.ScanWith(b, f.id, record.ScanOptions{Closed: r.cut})
	r.took(ext)
	switch {
	case errors.Is(err, record.ErrFormat):
		r.State, r.Problem = stateFormat, err.Error()
	case err != nil:
		r.State, r.Problem = stateCorrupt, err.Error()
	case ext.End == 0 && ext.LostBytes == 0:
		r.State = stateUnused
	case ext.Torn && !ext.Closed:
		r.State = stateTorn
		r.SealsBeyond = countSeals(b[ext.End : ext.End+ext.LostBytes])
	case ext.Closed:
		r.State = stateClosed
	default:
		r.State = stateOpen
	}
	return r, b, nil
}

// took notes what of the segment is whole.
func (r *segmentReport) took(ext record.Extent) {
	r.extent = ext
	r.UsedBytes, r.LostBytes, r.Entries, r.Batches, r.LastBatch = ext.End, ext.LostBytes, ext.Entries, ext.Batches, ext.Batch
}

// lastSeal is where the closing seal of a file stands that was cut.
func lastSeal(b []byte) []byte { return b[max(0, len(b)-record.SealBytes):] }

// countSeals counts what has the form of a seal behind an entry that is whole.
func countSeals(b []byte) (n int) {
	for off := 0; off+record.HeaderBytes <= len(b); {
		p, err := record.Check(b[off:])
		if err != nil || p.Type() == record.TypeVoid {
			off += 8
			continue
		}
		off += p.Length()
		if off+record.SealBytes <= len(b) && record.Type(b[off]&0x0f) == record.TypeSeal && b[off+record.SealBytes-1] == 0xA5 {
			n++
		}
	}
	return n
}

// surveyed is a whole directory after a scan.
type surveyed struct {
	dir        *dataDir
	identity   identityFile
	tables     *tablesFile
	checkpoint *checkpointFile
	metaErrs   []error // why one of those could not be read
	segments   []segmentReport
	keys       map[int]int64 // by database
	expired    int64         // newest records past their time
	synced     syncedFile
}

// newest is the newest entry of a key so far.
type newest struct {
	version   uint64
	segment   int32 // position in segments
	database  int32 // -1: of a flushed table, or a piece of a large value
	bytes     uint32
	tombstone bool
	expired   bool
}

// survey scans every segment. bar may be nil.
func survey(d *dataDir, bar *progressBar, now time.Time) (*surveyed, error) {
	s := &surveyed{dir: d, keys: map[int]int64{}}
	s.readMeta()
	keys := map[record.Place]newest{}
	tails := map[int][]byte{} // by position in segments
	var done int64
	for _, f := range d.segments {
		r, b, err := scanSegment(f)
		if errors.Is(err, fs.ErrNotExist) {
			continue // A running server cleaned it away.
		}
		if err != nil {
			return nil, err
		}
		if s.checkpoint != nil && !slices.Contains(s.checkpoint.Segments, f.id) {
			r.State, r.Problem, r.UsedBytes = stateStale, "", 0
		}
		s.segments = append(s.segments, r)
		if position := len(s.segments) - 1; r.isTail() {
			tails[position] = b
		} else {
			s.note(keys, position, b, now.UnixMilli())
		}
		done += f.bytes
		bar.Update(store.Progress{Stage: "scan", Done: done, Total: d.totalBytes(), Unit: "bytes"})
	}
	bar.Finish()
	if d.held || d.inUse() == "" { // Else they were read one after the other, while they grew.
		s.order(tails)
	}
	for position, b := range tails {
		s.note(keys, position, b, now.UnixMilli())
	}
	s.settle(keys)
	return s, nil
}

func (s *surveyed) readMeta() {
	var tablesErr, checkpointErr error
	_, identityErr := s.dir.readMeta("identity.json", &s.identity)
	_, syncedErr := s.dir.readMeta(hlog.SyncedMeta, &s.synced)
	s.tables, tablesErr = s.dir.readTables()
	s.checkpoint, checkpointErr = s.dir.readCheckpoint()
	s.metaErrs = slices.DeleteFunc([]error{identityErr, syncedErr, tablesErr, checkpointErr}, func(err error) bool { return err == nil })
}

// pieces is the table that holds the pieces of large values.
const pieces record.TableID = 1<<32 - 1

// note remembers the newest entry of each key of the segment at a position, with
// the bytes b.
func (s *surveyed) note(keys map[record.Place]newest, position int, b []byte, nowMillis int64) {
	r := &s.segments[position]
	for _, p := range record.Entries(b[:r.UsedBytes]) {
		switch p.Type() {
		case record.TypePut:
			r.Puts++
		case record.TypeTombstone:
			r.Tombstones++
		case record.TypeCompletion:
			if p.ExpireAt() <= nowMillis {
				continue // over: dead
			}
		default:
			continue
		}
		database := s.tables.database(p.Table())
		if internal := p.Table() == pieces || p.Type() == record.TypeCompletion; internal {
			database = -1
		} else if database < 0 {
			continue // flushed: dead
		}
		place := record.PlaceOf(p.Table(), p.Key())
		if old, ok := keys[place]; ok && old.version >= p.Version() {
			continue
		}
		expires := p.ExpireAt()
		keys[place] = newest{
			version: p.Version(), segment: int32(position), database: int32(database), bytes: uint32(p.Length()),
			tombstone: p.Type() == record.TypeTombstone, expired: expires != 0 && expires <= nowMillis,
		}
	}
}

// missing lists the segments that the checkpoint names and nobody has.
func (s *surveyed) missing() (ids []record.SegmentID) {
	if s.checkpoint == nil {
		return nil
	}
	for _, id := range s.checkpoint.Segments {
		if !slices.ContainsFunc(s.segments, func(r segmentReport) bool { return r.ID == id }) {
			ids = append(ids, id)
		}
	}
	return ids
}

// settle adds up what is alive.
func (s *surveyed) settle(keys map[record.Place]newest) {
	for _, k := range keys {
		switch {
		case k.tombstone:
		case k.expired:
			s.expired++
		default:
			s.segments[k.segment].LiveBytes += int64(k.bytes)
			if k.database >= 0 {
				s.keys[int(k.database)]++
			}
		}
	}
}
