package device

import (
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/ostrodb/ostro/engine/record"
)

// ErrCorrupt says that bytes do not have the checksum that they should have.
var ErrCorrupt = errors.New("corrupt")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Blob is the shared tier of one log: its closed segments as objects, and a
// manifest that says which of them count.
//
//	log-LOGID/segments/0123456789abcdef.seg   the bytes of a closed segment
//	log-LOGID/manifest/0123456789abcdef.json  manifest of that version
//	log-LOGID/conditional                     tells whether the store keeps its word
//
// Segments may be uploaded, read and removed by many goroutines at once. A segment
// never changes; uploading it again does nothing. What is uploaded but in no
// manifest is garbage of an interrupted writer.
type Blob struct {
	objects Objects
	log     record.LogID
	prefix  string
	url     string // without secrets
	logger  *slog.Logger
	retry   retry
	metrics blobMetrics

	manifestMu sync.Mutex // one load or replacement at a time
	known      manifestMark
	unsettled  map[string]bool // stamps of own replacements of unknown outcome since the last known one
	trusted    bool            // the store was seen to keep its word on PutNew
}

// OpenBlob opens the tier of a log under a URL: file:///dir, s3://bucket/prefix,
// azblob://container/prefix or gs://bucket/prefix, the last three in programs that
// import engine/device/cloud. It looks whether the place can be listed, so that a
// wrong name or missing credentials show at once.
func OpenBlob(ctx context.Context, url string, log record.LogID, logger *slog.Logger) (*Blob, error) {
	objects, err := openObjects(ctx, url)
	if err != nil {
		return nil, err
	}
	b := NewBlob(objects, log, logger)
	b.url = redact(url)
	if _, err := b.manifestVersions(ctx); err != nil {
		_ = objects.Close()
		return nil, err
	}
	return b, nil
}

// NewBlob makes the tier of a log in an open store.
func NewBlob(objects Objects, log record.LogID, logger *slog.Logger) *Blob {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	b := &Blob{objects: objects, log: log, logger: logger, url: "objects", unsettled: make(map[string]bool)}
	b.prefix = fmt.Sprintf("log-%016x/", uint64(log))
	b.retry = retry{retryable: objects.Retryable, again: b.tryAgain}
	return b
}

// Close ends the use of the store. Calls under way may fail.
func (b *Blob) Close() error { return b.objects.Close() }

// URL names the place, without secrets.
func (b *Blob) URL() string { return b.url }

// Upload makes a segment an object. It does nothing if the object is there and
// whole, refuses bytes that do not have the given CRC-32C, and afterwards looks
// what the store made of them. An interrupted upload leaves nothing and is simply
// repeated: the segment is the unit.
func (b *Blob) Upload(ctx context.Context, id record.SegmentID, r io.ReaderAt, size int64, crc uint32) error {
	key := b.segmentKey(id)
	switch there, err := b.whole(ctx, key, size, crc); {
	case err != nil:
		return b.fail("upload", id, err)
	case there:
		b.metrics.skipped.Add(1)
		return nil
	}
	sum, err := checksum(ctx, r, size)
	if err != nil {
		return b.fail("upload", id, fmt.Errorf("read the segment: %w", err))
	}
	if sum.CRC != crc {
		return b.fail("upload", id, fmt.Errorf("%w: the segment to upload has checksum %08x, not %08x", ErrCorrupt, sum.CRC, crc))
	}
	err = b.retry.do(ctx, func(ctx context.Context) error { return b.objects.Put(ctx, key, r, size, sum) })
	if err != nil {
		return b.fail("upload", id, err)
	}
	switch there, err := b.whole(ctx, key, size, crc); {
	case err != nil:
		return b.fail("verify", id, err)
	case !there:
		return b.fail("verify", id, fmt.Errorf("%w: the store does not have what it was given", ErrCorrupt))
	}
	b.metrics.uploads.Add(1)
	b.metrics.uploadedBytes.Add(size)
	return nil
}

// whole tells whether the object is there with the right size and checksum.
func (b *Blob) whole(ctx context.Context, key string, size int64, crc uint32) (bool, error) {
	info, err := retried(ctx, &b.retry, func(ctx context.Context) (ObjectInfo, error) { return b.objects.Stat(ctx, key) })
	if isMissing(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if info == (ObjectInfo{Bytes: size, CRC: crc, HasCRC: true}) {
		return true, nil
	}
	b.logger.Warn("blob object is not the segment it should be; writing it again",
		"tier", b.url, "key", key, "bytes", info.Bytes, "want", size)
	return false, nil
}

// Verify reads a whole segment back and compares its checksum.
func (b *Blob) Verify(ctx context.Context, id record.SegmentID, size int64, crc uint32) error {
	got, err := checksum(ctx, segmentReader{ctx: ctx, blob: b, id: id}, size)
	if err != nil {
		return b.fail("verify", id, err)
	}
	if got.CRC != crc {
		return b.fail("verify", id, fmt.Errorf("%w: it has checksum %08x, not %08x", ErrCorrupt, got.CRC, crc))
	}
	return nil
}

// ReadAt reads a part of a segment, following io.ReaderAt. It does not check: the
// entries inside carry their own checksums. A missing segment is fs.ErrNotExist.
func (b *Blob) ReadAt(ctx context.Context, id record.SegmentID, p []byte, off int64) (int, error) {
	n, err := b.readAll(ctx, b.segmentKey(id), p, off)
	b.metrics.reads.Add(1)
	b.metrics.readBytes.Add(int64(n))
	if err != nil && !isEOF(err) {
		err = b.fail("read", id, err)
	}
	return n, err
}

// readAll goes on behind what a broken read already gave.
func (b *Blob) readAll(ctx context.Context, key string, p []byte, off int64) (n int, err error) {
	err = b.retry.do(ctx, func(ctx context.Context) error {
		m, err := b.objects.ReadAt(ctx, key, p[n:], off+int64(n))
		n += m
		return err
	})
	return n, err
}

// Remove deletes a segment; one that is not there is no error.
func (b *Blob) Remove(ctx context.Context, id record.SegmentID) error {
	err := b.retry.do(ctx, func(ctx context.Context) error { return b.objects.Delete(ctx, b.segmentKey(id)) })
	if err != nil {
		return b.fail("remove", id, err)
	}
	b.metrics.removes.Add(1)
	return nil
}

// List names the segments that are there, sorted. After a restart it tells what
// need not be uploaded again.
func (b *Blob) List(ctx context.Context) ([]record.SegmentID, error) {
	prefix := b.prefix + "segments/"
	keys, err := retried(ctx, &b.retry, func(ctx context.Context) ([]string, error) { return b.objects.List(ctx, prefix) })
	if err != nil {
		b.metrics.failures.Add(1)
		return nil, fmt.Errorf("blob tier %s: list segments: %w", b.url, err)
	}
	ids := make([]record.SegmentID, 0, len(keys))
	for _, key := range keys {
		if id, ok := ParseSegmentName(strings.TrimPrefix(key, prefix)); ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

func (b *Blob) segmentKey(id record.SegmentID) string {
	return b.prefix + "segments/" + segmentName(id)
}

func (b *Blob) fail(act string, id record.SegmentID, err error) error {
	b.metrics.failures.Add(1)
	return fmt.Errorf("blob tier %s: %s segment %016x of log %016x: %w", b.url, act, uint64(id), uint64(b.log), err)
}

// tryAgain hears of every failure that will be retried.
func (b *Blob) tryAgain(err error) {
	b.metrics.retries.Add(1)
	b.logger.Warn("blob tier failed; trying again", "tier", b.url, "error", err)
}

// checksum reads everything once.
func checksum(ctx context.Context, r io.ReaderAt, size int64) (Checksum, error) {
	crc, digest := crc32.New(castagnoli), md5.New()
	n, err := io.Copy(io.MultiWriter(crc, digest), &contextReader{ctx: ctx, r: io.NewSectionReader(r, 0, size)})
	if err == nil && n != size {
		err = fmt.Errorf("%d bytes instead of %d: %w", n, size, io.ErrUnexpectedEOF)
	}
	return Checksum{CRC: crc.Sum32(), MD5: digest.Sum(nil)}, err
}

// segmentReader is a segment of the tier as an io.ReaderAt.
type segmentReader struct {
	ctx  context.Context
	blob *Blob
	id   record.SegmentID
}

func (r segmentReader) ReadAt(p []byte, off int64) (int, error) {
	return r.blob.ReadAt(r.ctx, r.id, p, off)
}
