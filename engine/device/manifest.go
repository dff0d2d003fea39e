package device

import (
	"bytes"
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

// manifestMark identifies one replacement for good: versions can be written twice,
// if only one of them counts, but stamps are random.
type manifestMark struct {
	version uint64
	stamp   string
}

// manifestObject is a manifest as it is stored. The stamp stands first, so that
// the first bytes of the object tell whose it is; the checksum is over it and the
// manifest's bytes as they stand.
type manifestObject struct {
	Stamp    string          `json:"stamp"`
	CRC      uint32          `json:"crc32c"`
	Manifest json.RawMessage `json:"manifest"`
}

const (
	stampLength = 32
	stampStart  = `{"stamp":"`
	// manifestHead is how much of an object is enough to see its stamp.
	manifestHead = len(stampStart) + stampLength + 1
)

func newStamp() string {
	var b [stampLength / 2]byte
	_, _ = rand.Read(b[:]) // It never fails.
	return hex.EncodeToString(b[:])
}

func encodeManifest(m Manifest, stamp string) ([]byte, error) {
	if m.Segments == nil {
		m.Segments = []ManifestSegment{}
	}
	inner, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	return json.Marshal(manifestObject{Stamp: stamp, CRC: manifestSum(stamp, inner), Manifest: inner})
}

func manifestSum(stamp string, manifest []byte) uint32 {
	return crc32.Update(crc32.Checksum([]byte(stamp), castagnoli), castagnoli, manifest)
}

// decodeManifest accepts only a whole manifest of that version and log.
func decodeManifest(data []byte, version uint64, log record.LogID) (Manifest, manifestMark, error) {
	var object manifestObject
	var m Manifest
	if err := json.Unmarshal(data, &object); err != nil {
		return m, manifestMark{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if got := manifestSum(object.Stamp, object.Manifest); got != object.CRC {
		return m, manifestMark{}, fmt.Errorf("%w: it has checksum %08x, not %08x", ErrCorrupt, got, object.CRC)
	}
	if err := json.Unmarshal(object.Manifest, &m); err != nil {
		return m, manifestMark{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if m.Version != version || m.Log != log {
		return m, manifestMark{}, fmt.Errorf("%w: it is version %d of log %016x, not %d of %016x",
			ErrCorrupt, m.Version, uint64(m.Log), version, uint64(log))
	}
	if stamp, ok := stampOf(data); !ok || stamp != object.Stamp {
		return m, manifestMark{}, fmt.Errorf("%w: it does not begin with its stamp", ErrCorrupt)
	}
	return m, manifestMark{version: version, stamp: object.Stamp}, nil
}

// stampOf reads the stamp from the beginning of an object.
func stampOf(head []byte) (string, bool) {
	if len(head) < manifestHead || !bytes.HasPrefix(head, []byte(stampStart)) || head[manifestHead-1] != '"' {
		return "", false
	}
	return string(head[len(stampStart) : manifestHead-1]), true
}

func manifestName(version uint64) string { return fmt.Sprintf("%016x.json", version) }

// parseManifestName accepts exactly what manifestName makes.
func parseManifestName(name string) (uint64, bool) {
	digits, _ := strings.CutSuffix(name, ".json")
	version, err := strconv.ParseUint(digits, 16, 64)
	return version, err == nil && manifestName(version) == name
}
