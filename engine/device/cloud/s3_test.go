package cloud_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	_ "github.com/ostrodb/ostro/engine/device/cloud"
	"github.com/ostrodb/ostro/engine/device/devicetest"
	"github.com/ostrodb/ostro/engine/record"
)

const segmentBytes = 8 << 20

func openBlob(t testing.TB, url string, log record.LogID) *device.Blob {
	t.Helper()
	b, err := device.OpenBlob(t.Context(), url, log, nil)
	must(t, err)
	t.Cleanup(func() { must(t, b.Close()) })
	return b
}

// TestS3 runs against a real server, a process of its own.
func TestS3(t *testing.T) {
	s := devicetest.StartS3(t)
	t.Run("carries the blob tier", func(t *testing.T) {
		devicetest.BlobSuite{
			Open:    func(t testing.TB, log record.LogID) *device.Blob { return openBlob(t, s.URL(s.Address), log) },
			Writers: 4, Rounds: 60,
		}.Run(t)
	})
	t.Run("refuses bytes that do not have their checksum", func(t *testing.T) { testServerChecks(t, s) })
	t.Run("says what is wrong with an address or with credentials", func(t *testing.T) { testClearErrors(t, s) })
	t.Run("keeps what was whole when it is killed", func(t *testing.T) { testKilled(t, s) })
}

// lyingReader gives other bytes from the second pass on, after the checksum was
// taken.
type lyingReader struct {
	*bytes.Reader
	passes int
}

func (r *lyingReader) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.Reader.ReadAt(p, off)
	if off == 0 {
		r.passes++
	}
	if r.passes > 1 && off == 0 {
		p[0] ^= 1
	}
	return n, err
}

// testServerChecks changes the bytes between checksum and upload, and then on the
// wire.
func testServerChecks(t *testing.T, s *devicetest.S3) {
	p := newProxy(t, s.Address)
	b := openBlob(t, s.URL(p.address()), 1)
	segment, crc := devicetest.Segment(1, segmentBytes)
	err := b.Upload(t.Context(), 1, &lyingReader{Reader: bytes.NewReader(segment)}, segmentBytes, crc)
	if !errors.Is(err, device.ErrCorrupt) {
		t.Errorf("bytes that changed: %v, want ErrCorrupt", err)
	}
	if ids, err := b.List(t.Context()); err != nil || len(ids) != 0 {
		t.Errorf("the tier holds %x, %v", ids, err)
	}
	flipped := false
	p.after(segmentBytes/2, func(b []byte) { b[0] ^= 1; flipped = true })
	must(t, b.Upload(t.Context(), 1, bytes.NewReader(segment), segmentBytes, crc))
	must(t, b.Verify(t.Context(), 1, segmentBytes, crc))
	if m := b.Metrics(); !flipped || m.Retries != 1 {
		t.Errorf("flipped a bit on the wire: %v; counted %+v, want one retry", flipped, m)
	}
}

func testClearErrors(t *testing.T, s *devicetest.S3) {
	_, err := device.OpenBlob(t.Context(), strings.Replace(s.URL(s.Address), "ostro", "absent", 1), 1, nil)
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "s3://absent/some/prefix") {
		t.Errorf("a bucket that does not exist: %v", err)
	}
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong")
	_, err = device.OpenBlob(t.Context(), s.URL(s.Address), 1, nil)
	if err == nil || !strings.Contains(err.Error(), "SignatureDoesNotMatch") {
		t.Errorf("wrong credentials: %v", err)
	}
}

// testKilled kills the server in the middle of a segment's bytes, with kill -9, and
// serves the same directory again.
func testKilled(t *testing.T, s *devicetest.S3) {
	p := newProxy(t, s.Address)
	b := openBlob(t, s.URL(p.address()), 2)
	whole, crc := devicetest.Segment(1, segmentBytes)
	must(t, b.Upload(t.Context(), 1, bytes.NewReader(whole), segmentBytes, crc))
	must(t, b.ReplaceManifest(t.Context(), device.Manifest{Version: 1, Writer: 9}))

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p.after(segmentBytes/2, func([]byte) {
		s.Kill()
		cancel() // Nobody will serve; do not wait for all the retries.
	})
	second, crc2 := devicetest.Segment(2, segmentBytes)
	if err := b.Upload(ctx, 2, bytes.NewReader(second), segmentBytes, crc2); err == nil {
		t.Fatal("an upload to a killed server succeeded")
	}

	must(t, s.Start())
	ids, err := b.List(t.Context())
	must(t, err)
	if len(ids) != 1 || ids[0] != 1 {
		t.Fatalf("after the restart the tier holds %x, want 1 only", ids)
	}
	must(t, b.Verify(t.Context(), 1, segmentBytes, crc))
	must(t, b.Upload(t.Context(), 1, bytes.NewReader(whole), segmentBytes, crc))
	must(t, b.Upload(t.Context(), 2, bytes.NewReader(second), segmentBytes, crc2))
	must(t, b.Verify(t.Context(), 2, segmentBytes, crc2))
	if m := b.Metrics(); m.Skipped != 1 || m.Uploads != 2 {
		t.Errorf("counted %+v, want 1 skipped and 2 uploaded", m)
	}
	m, err := b.LoadManifest(t.Context())
	must(t, err)
	if m.Version != 1 || m.Writer != 9 {
		t.Errorf("the manifest is %+v", m)
	}

	testRetriesThroughARestart(t, s, p, b)
}

// testRetriesThroughARestart lets the server come back while an upload is still
// being tried.
func testRetriesThroughARestart(t *testing.T, s *devicetest.S3, p *proxy, b *device.Blob) {
	third, crc := devicetest.Segment(3, segmentBytes)
	restarted := make(chan error, 1)
	p.after(segmentBytes/2, func([]byte) {
		s.Kill()
		restarted <- s.Start()
	})
	must(t, b.Upload(t.Context(), 3, bytes.NewReader(third), segmentBytes, crc))
	must(t, <-restarted)
	must(t, b.Verify(t.Context(), 3, segmentBytes, crc))
}
