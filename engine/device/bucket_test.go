package device_test

import (
	"bytes"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/device/devicetest"
	"github.com/ostrodb/ostro/engine/record"
)

func TestABucketReadsEveryLogAndRemovesOne(t *testing.T) {
	dir := t.TempDir()
	bucket, err := device.OpenBucket(t.Context(), "file://"+dir, nil)
	must(t, err)
	defer func() { must(t, bucket.Close()) }()
	segment, crc := devicetest.Segment(1, 4096)
	for _, log := range []record.LogID{7, 8} {
		b := openBlob(t, dir, log)
		must(t, b.Upload(t.Context(), 1, bytes.NewReader(segment), 4096, crc))
		must(t, b.ReplaceManifest(t.Context(), device.Manifest{Version: 1, Segments: []device.ManifestSegment{{ID: 1, Bytes: 4096, CRC: crc}}}))
	}
	n, err := bucket.RemoveLog(t.Context(), 7)
	must(t, err)
	if n != 3 { // The segment, the manifest, and the word of the store.
		t.Errorf("%d objects were removed", n)
	}
	if n, err := bucket.RemoveLog(t.Context(), 7); n != 0 || err != nil {
		t.Errorf("the second time %d objects were removed, %v", n, err)
	}
	if m, err := bucket.Log(7).LoadManifest(t.Context()); err != nil || m.Version != 0 {
		t.Errorf("the log that was removed has manifest %+v, %v", m, err)
	}
	m, err := bucket.Log(8).LoadManifest(t.Context())
	must(t, err)
	got := make([]byte, 4096)
	_, err = bucket.Log(8).ReadAt(t.Context(), m.Segments[0].ID, got, 0)
	must(t, err)
	must(t, m.Segments[0].Check(got))
	got[17] ^= 1
	if m.Segments[0].Check(got) == nil {
		t.Error("bytes that changed are taken for the segment")
	}
}
