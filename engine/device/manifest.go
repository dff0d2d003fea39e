package device

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/ostrodb/ostro/engine/record"
)

// ErrManifestConflict says that another writer replaced the manifest first. Load
// it again and decide anew.
var ErrManifestConflict = errors.New("another writer replaced the manifest first")

// ErrManifestUnknown says that a replacement may have happened, or may still happen:
// the answer got lost. Load the manifest before anything else is done with it.
var ErrManifestUnknown = errors.New("whether the manifest was replaced is unknown")

// Manifest says which segments of a log are in the blob tier. The zero Manifest,
// version 0, is that of a log without any.
type Manifest struct {
	Version  uint64            `json:"version"`
	Log      record.LogID      `json:"log"`
	Writer   uint64            `json:"writer"` // who wrote this version, for people who look at it
	Segments []ManifestSegment `json:"segments"`
}

// ManifestSegment is one segment in the tier.
type ManifestSegment struct {
	ID             record.SegmentID `json:"id"`
	Bytes          int64            `json:"bytes"`
	CRC            uint32           `json:"crc32c"`
	UploadedMillis int64            `json:"uploaded_ms"`
}

// Check says whether these are the bytes of the segment.
func (m ManifestSegment) Check(b []byte) error {
	if sum := crc32.Checksum(b, castagnoli); int64(len(b)) != m.Bytes || sum != m.CRC {
		return fmt.Errorf("%w: %d bytes with checksum %08x instead of %d with %08x", ErrCorrupt, len(b), sum, m.Bytes, m.CRC)
	}
	return nil
}

// manifestMark identifies one replacement for good, and those before it: a version
// number can be written twice, if only one of them counts, but stamps are random.
type manifestMark struct {
	version uint64
	stamp   string
	history []string // stamps of the versions before, the last one first
}

// historyKept is how many stamps a manifest remembers: 5 kB.
const historyKept = 256

// next is the mark of a replacement of m's manifest.
func (m manifestMark) next() manifestMark {
	next := manifestMark{version: m.version + 1, stamp: newStamp()}
	if m.version > 0 {
		next.history = append([]string{m.stamp}, m.history[:min(len(m.history), historyKept-1)]...)
	}
	return next
}

// stampOf is the stamp of a version up to m's own, if it is remembered.
func (m manifestMark) stampOf(version uint64) (string, bool) {
	switch back := m.version - version; {
	case back == 0:
		return m.stamp, true
	case back <= uint64(len(m.history)):
		return m.history[back-1], true
	default:
		return "", false
	}
}

func newStamp() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // It never fails.
	return hex.EncodeToString(b[:])
}

// manifestObject is a manifest as it is stored. The checksum is over the bytes of
// the body as they stand.
type manifestObject struct {
	CRC  uint32          `json:"crc32c"`
	Body json.RawMessage `json:"manifest"`
}

type manifestBody struct {
	Manifest
	Stamp   string   `json:"stamp"`
	History []string `json:"history"`
}

func encodeManifest(m Manifest, mark manifestMark) ([]byte, error) {
	if m.Segments == nil {
		m.Segments = []ManifestSegment{}
	}
	body, err := json.Marshal(manifestBody{Manifest: m, Stamp: mark.stamp, History: mark.history})
	if err != nil {
		return nil, err
	}
	return json.Marshal(manifestObject{CRC: crc32.Checksum(body, castagnoli), Body: body})
}

// decodeManifest accepts only a whole manifest of that version and log.
func decodeManifest(data []byte, version uint64, log record.LogID) (Manifest, manifestMark, error) {
	var object manifestObject
	var body manifestBody
	if err := json.Unmarshal(data, &object); err != nil {
		return Manifest{}, manifestMark{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if got := crc32.Checksum(object.Body, castagnoli); got != object.CRC {
		return Manifest{}, manifestMark{}, fmt.Errorf("%w: it has checksum %08x, not %08x", ErrCorrupt, got, object.CRC)
	}
	if err := json.Unmarshal(object.Body, &body); err != nil {
		return Manifest{}, manifestMark{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if body.Version != version || body.Log != log {
		return Manifest{}, manifestMark{}, fmt.Errorf("%w: it is version %d of log %016x, not %d of %016x",
			ErrCorrupt, body.Version, uint64(body.Log), version, uint64(log))
	}
	return body.Manifest, manifestMark{version: version, stamp: body.Stamp, history: body.History}, nil
}

func manifestName(version uint64) string { return fmt.Sprintf("%016x.json", version) }

// parseManifestName accepts exactly what manifestName makes.
func parseManifestName(name string) (uint64, bool) {
	digits, _ := strings.CutSuffix(name, ".json")
	version, err := strconv.ParseUint(digits, 16, 64)
	return version, err == nil && manifestName(version) == name
}
