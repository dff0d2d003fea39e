package devicetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/record"
)

// BlobSuite is what the blob tier does on every store of objects.
type BlobSuite struct {
	// Open opens the tier of a log. All calls of one test see the same store; no two
	// tests use the same log.
	Open func(t testing.TB, log record.LogID) *device.Blob
	// Writers and Rounds size the race for the manifest.
	Writers, Rounds int
}

// Run runs the whole suite.
func (s BlobSuite) Run(t *testing.T) {
	tests := []struct {
		name string
		run  func(*testing.T, record.LogID)
	}{
		{"a segment comes back as it was", s.segmentsComeBack},
		{"an upload is done once", s.uploadOnce},
		{"an object that is not the segment is replaced", s.replaceForeign},
		{"bytes with another checksum are refused", s.refuseCorrupt},
		{"logs are strangers", s.logsAreStrangers},
		{"what is missing is fs.ErrNotExist", s.missing},
		{"a cancelled context ends calls", s.cancelled},
		{"manifests follow each other", s.manifests},
		{"of two writers one wins", s.oneWins},
		{"writers that race never both win", s.race},
		{"a writer that slept is told", s.slept},
	}
	for n, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, record.LogID(n+1)<<32) })
	}
}

// Segment makes the bytes of a segment and their checksum; a seed gives the same
// ones always.
func Segment(seed uint64, bytes int) ([]byte, uint32) {
	rng := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	p := make([]byte, bytes)
	_, _ = rng.Read(p)
	return p, crc32.Checksum(p, crc32.MakeTable(crc32.Castagnoli))
}

func upload(t *testing.T, b *device.Blob, id record.SegmentID, bytes int) []byte {
	t.Helper()
	p, crc := Segment(uint64(id), bytes)
	must(t, b.Upload(t.Context(), id, newReader(p), int64(len(p)), crc))
	return p
}

func newReader(p []byte) io.ReaderAt { return bytes.NewReader(p) }

func (s BlobSuite) segmentsComeBack(t *testing.T, log record.LogID) {
	b := s.Open(t, log)
	ids := []record.SegmentID{1 << 63, 2, 300}
	for _, id := range ids {
		want := upload(t, b, id, 300_000)
		for _, part := range [][2]int{{0, 300_000}, {0, 1}, {299_999, 1}, {4096, 8192}} {
			got := make([]byte, part[1])
			n, err := b.ReadAt(t.Context(), id, got, int64(part[0]))
			if err != nil && err != io.EOF || n != part[1] || !bytes.Equal(got, want[part[0]:part[0]+part[1]]) {
				t.Fatalf("%d bytes at %d: got %d, %v, or other ones", part[1], part[0], n, err)
			}
		}
		for off, want := range map[int64]int{299_990: 10, 300_000: 0, 400_000: 0} {
			if n, err := b.ReadAt(t.Context(), id, make([]byte, 20), off); n != want || err != io.EOF {
				t.Errorf("read across the end at %d: %d, %v; want %d, io.EOF", off, n, err, want)
			}
		}
	}
	wantSegments(t, b, 2, 300, 1<<63)
	must(t, b.Remove(t.Context(), 300))
	must(t, b.Remove(t.Context(), 300))
	wantSegments(t, s.Open(t, log), 2, 1<<63)
}

func (s BlobSuite) uploadOnce(t *testing.T, log record.LogID) {
	upload(t, s.Open(t, log), 1, 8<<20)
	b := s.Open(t, log) // As after a restart.
	p := upload(t, b, 1, 8<<20)
	if m := b.Metrics(); m.Skipped != 1 || m.Uploads != 0 {
		t.Fatalf("the second upload did something: %+v", m)
	}
	_, crc := Segment(1, 8<<20)
	must(t, b.Verify(t.Context(), 1, int64(len(p)), crc))
}

func (s BlobSuite) replaceForeign(t *testing.T, log record.LogID) {
	b := s.Open(t, log)
	other, crc := Segment(99, 1000)
	must(t, b.Upload(t.Context(), 1, newReader(other), 1000, crc))
	for _, size := range []int{1000, 5000} {
		p, crc := Segment(uint64(size), size)
		if err := b.Verify(t.Context(), 1, int64(size), crc); err == nil {
			t.Fatal("another segment passed for this one")
		}
		must(t, b.Upload(t.Context(), 1, newReader(p), int64(size), crc))
		must(t, b.Verify(t.Context(), 1, int64(size), crc))
	}
}

func (s BlobSuite) refuseCorrupt(t *testing.T, log record.LogID) {
	b := s.Open(t, log)
	p, crc := Segment(1, 10_000)
	p[5000] ^= 1
	if err := b.Upload(t.Context(), 1, newReader(p), 10_000, crc); !errors.Is(err, device.ErrCorrupt) {
		t.Errorf("a flipped bit: %v, want ErrCorrupt", err)
	}
	if err := b.Upload(t.Context(), 2, newReader(p[:9000]), 10_000, crc); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("too few bytes: %v, want io.ErrUnexpectedEOF", err)
	}
	wantSegments(t, b)
}

func (s BlobSuite) logsAreStrangers(t *testing.T, log record.LogID) {
	a, b := s.Open(t, log), s.Open(t, log+1)
	upload(t, a, 1, 100)
	replace(t, a, 1)
	wantSegments(t, b)
	if m, err := b.LoadManifest(t.Context()); err != nil || m.Version != 0 {
		t.Fatalf("another log's manifest was loaded: %+v, %v", m, err)
	}
	replace(t, b, 1)
}

func (s BlobSuite) missing(t *testing.T, log record.LogID) {
	b := s.Open(t, log)
	if _, err := b.ReadAt(t.Context(), 9, make([]byte, 10), 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("read: %v", err)
	}
	if err := b.Verify(t.Context(), 9, 10, 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("verify: %v", err)
	}
	if m := b.Metrics(); m.Retries != 0 {
		t.Errorf("an absent segment was tried again: %+v", m)
	}
}

func (s BlobSuite) cancelled(t *testing.T, log record.LogID) {
	b := s.Open(t, log)
	upload(t, b, 1, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p, crc := Segment(2, 1000)
	_, readErr := b.ReadAt(ctx, 1, p, 0)
	for act, err := range map[string]error{
		"upload":   b.Upload(ctx, 2, newReader(p), 1000, crc),
		"read":     readErr,
		"manifest": b.ReplaceManifest(ctx, device.Manifest{Version: 1}),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want context.Canceled", act, err)
		}
	}
	wantSegments(t, b, 1)
}

func (s BlobSuite) manifests(t *testing.T, log record.LogID) {
	b := s.Open(t, log)
	m, err := b.LoadManifest(t.Context())
	must(t, err)
	if m.Version != 0 || m.Log != log || len(m.Segments) != 0 {
		t.Fatalf("an empty tier has manifest %+v", m)
	}
	for range 40 {
		m.Version++
		m.Writer = 7
		m.Segments = append(m.Segments, device.ManifestSegment{ID: record.SegmentID(m.Version), Bytes: 1 << 40, CRC: 1 << 31, UploadedMillis: 1e12})
		must(t, b.ReplaceManifest(t.Context(), m))
	}
	got, err := s.Open(t, log).LoadManifest(t.Context())
	must(t, err)
	if got.Version != 40 || got.Writer != 7 || got.Log != log || !slices.Equal(got.Segments, m.Segments) {
		t.Fatalf("loaded %+v", got)
	}
	for _, version := range []uint64{0, 39, 40, 42} {
		if err := b.ReplaceManifest(t.Context(), device.Manifest{Version: version}); !errors.Is(err, device.ErrManifestConflict) {
			t.Errorf("version %d after 40: %v, want ErrManifestConflict", version, err)
		}
	}
}

func (s BlobSuite) oneWins(t *testing.T, log record.LogID) {
	for _, before := range []uint64{0, 1, 5} {
		log := log + record.LogID(before)
		a, b := s.Open(t, log), s.Open(t, log)
		for version := range before {
			replace(t, a, version+1)
		}
		_, err := b.LoadManifest(t.Context())
		must(t, err)
		replace(t, a, before+1)
		err = b.ReplaceManifest(t.Context(), device.Manifest{Version: before + 1, Writer: 2})
		if !errors.Is(err, device.ErrManifestConflict) {
			t.Fatalf("the second writer of version %d: %v, want ErrManifestConflict", before+1, err)
		}
		if m := b.Metrics(); m.ManifestConflicts != 1 || m.Failures != 0 {
			t.Errorf("counted %+v", m)
		}
		m, err := b.LoadManifest(t.Context())
		must(t, err)
		if m.Writer != 1 {
			t.Fatalf("the loser's manifest was loaded: %+v", m)
		}
		must(t, b.ReplaceManifest(t.Context(), device.Manifest{Version: before + 2, Writer: 2}))
	}
}

// race lets writers add their own entries to the manifest at once. An entry whose
// writer was told that it won is in the last manifest, once; no other is.
func (s BlobSuite) race(t *testing.T, log record.LogID) {
	replace(t, s.Open(t, log), 1)
	var group sync.WaitGroup
	won := make([][]record.SegmentID, s.Writers)
	for writer := range s.Writers {
		b := s.Open(t, log)
		group.Go(func() {
			var err error
			if won[writer], err = RaceManifest(t.Context(), b, uint64(writer+1), s.Rounds); err != nil {
				t.Errorf("writer %d: %v", writer, err)
			}
		})
	}
	group.Wait()
	m, err := s.Open(t, log).LoadManifest(t.Context())
	must(t, err)
	CheckRace(t, m, slices.Concat(won...))
}

// RaceManifest tries rounds times to add an entry of its own to the manifest, and
// returns those entries for which it was told that it won.
func RaceManifest(ctx context.Context, b *device.Blob, writer uint64, rounds int) (won []record.SegmentID, err error) {
	for round := range rounds {
		m, err := b.LoadManifest(ctx)
		if err != nil {
			return won, err
		}
		id := record.SegmentID(writer<<32 | uint64(round))
		m.Version++
		m.Writer = writer
		m.Segments = append(m.Segments, device.ManifestSegment{ID: id})
		switch err := b.ReplaceManifest(ctx, m); {
		case err == nil:
			won = append(won, id)
		case !errors.Is(err, device.ErrManifestConflict):
			return won, err
		}
	}
	return won, nil
}

// CheckRace compares the manifest after a race, which began with an empty version
// 1, with what the writers were told.
func CheckRace(t *testing.T, m device.Manifest, won []record.SegmentID) {
	t.Helper()
	var there []record.SegmentID
	for _, segment := range m.Segments {
		there = append(there, segment.ID)
	}
	slices.Sort(there)
	slices.Sort(won)
	if !slices.Equal(there, won) {
		t.Errorf("%d entries are in the manifest, %d writers won, or other ones", len(there), len(won))
	}
	if m.Version != uint64(len(won))+1 {
		t.Errorf("version %d after %d replacements", m.Version, len(won)+1)
	}
	if len(won) == 0 {
		t.Error("nobody ever won")
	}
	t.Logf("%d replacements", len(won))
}

// slept lets writers wake up when the versions that they want to write were removed
// long ago. The first one leaves what looks like the second one's predecessor.
func (s BlobSuite) slept(t *testing.T, log record.LogID) {
	for _, before := range []uint64{0, 3} {
		log := log + record.LogID(before)
		awake, asleep, older := s.Open(t, log), s.Open(t, log), s.Open(t, log)
		for version := range before {
			_, err := older.LoadManifest(t.Context()) // It stays one version behind the other sleeper.
			must(t, err)
			replace(t, awake, version+1)
		}
		_, err := asleep.LoadManifest(t.Context())
		must(t, err)
		for version := before + 1; version <= before+50; version++ {
			replace(t, awake, version)
		}
		for _, late := range []struct {
			blob    *device.Blob
			version uint64
		}{{older, before}, {asleep, before + 1}} {
			if late.version == 0 {
				continue
			}
			err := late.blob.ReplaceManifest(t.Context(), device.Manifest{Version: late.version, Writer: 66})
			if !errors.Is(err, device.ErrManifestConflict) {
				t.Fatalf("version %d after 50 more: %v, want ErrManifestConflict", late.version, err)
			}
		}
		if m, err := asleep.LoadManifest(t.Context()); err != nil || m.Version != before+50 || m.Writer != 1 {
			t.Fatalf("after the late writers: %+v, %v", m, err)
		}
		replace(t, awake, before+51)
	}
}

func replace(t *testing.T, b *device.Blob, version uint64) {
	t.Helper()
	must(t, b.ReplaceManifest(t.Context(), device.Manifest{Version: version, Writer: 1}))
}

func wantSegments(t *testing.T, b *device.Blob, want ...record.SegmentID) {
	t.Helper()
	got, err := b.List(t.Context())
	must(t, err)
	if !slices.Equal(got, want) {
		t.Fatalf("the tier holds %s, want %s", hex(got), hex(want))
	}
}

func hex(ids []record.SegmentID) string { return fmt.Sprintf("%x", ids) }
