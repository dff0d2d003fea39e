// Package cloud brings the object stores of the cloud providers to the blob tier.
// A program imports it for its effect:
//
//	import _ "github.com/ostrodb/ostro/engine/device/cloud"
//
// and can then open these URLs, whose path is a prefix of all keys:
//
//	s3://BUCKET/PREFIX?region=eu-central-1     credentials as the AWS tools find them; for other
//	                                           servers &endpoint=https://host&use_path_style=true
//	azblob://CONTAINER/PREFIX                  AZURE_STORAGE_ACCOUNT and _KEY, _SAS_TOKEN or a managed identity
//	gs://BUCKET/PREFIX                         application default credentials
//
// It is a package of its own because the providers' libraries weigh 60 MB in every
// binary, and so in every test, that has them.
package cloud

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"strconv"
	"strings"

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/azureblob" // azblob://
	_ "gocloud.dev/blob/gcsblob"   // gs://
	_ "gocloud.dev/blob/s3blob"    // s3://
	"gocloud.dev/gcerrors"

	"github.com/ostrodb/ostro/engine/device"
)

func init() {
	for _, scheme := range []string{"s3", "azblob", "gs"} {
		device.RegisterObjects(scheme, open)
	}
}

// crcKey is the name of the metadata that holds an object's CRC-32C. Azure allows
// letters, digits and the underscore.
const crcKey = "ostrocrc32c"

// onePut is the size up to which the S3 library sends an object in one request,
// which alone can carry a checksum of the whole.
const onePut = 16 << 20

// bucket is a gocloud bucket as device.Objects.
type bucket struct {
	b *blob.Bucket
	// plain is set for S3 servers that do not know checksum headers.
	plain bool
}

var _ device.Objects = (*bucket)(nil)

func open(ctx context.Context, u *url.URL) (device.Objects, error) {
	place := *u
	place.Path = ""
	b, err := blob.OpenBucket(ctx, place.String())
	if err != nil {
		return nil, err
	}
	if prefix := strings.Trim(u.Path, "/"); prefix != "" {
		b = blob.PrefixedBucket(b, prefix+"/")
	}
	return &bucket{b: b, plain: u.Query().Get("request_checksum_calculation") == "when_required"}, nil
}

// Put lets the store compare the bytes with a checksum, and compares them itself
// with the one that they should have while they are read.
//
// gocloud's own comparison of an MD5 is not used: it makes writers of the kind that
// panics in azureblob (v0.47) whenever a write fails.
func (b *bucket) Put(ctx context.Context, key string, r io.ReaderAt, size int64, sum device.Checksum) error {
	options := &blob.WriterOptions{
		ContentType: "application/octet-stream",
		Metadata:    map[string]string{crcKey: fmt.Sprintf("%08x", sum.CRC)},
		BeforeWrite: func(as func(any) bool) error {
			requireChecksum(as, sum, size < onePut && !b.plain)
			return nil
		},
	}
	return explain(b.b.Upload(ctx, key, newCheckedReader(r, size, sum.CRC), options))
}

// PutNew is a conditional write: If-None-Match or its like.
func (b *bucket) PutNew(ctx context.Context, key string, data []byte) error {
	options := &blob.WriterOptions{ContentType: "application/json", IfNotExist: true}
	err := b.b.Upload(ctx, key, bytes.NewReader(data), options)
	if gcerrors.Code(err) == gcerrors.FailedPrecondition {
		return fmt.Errorf("%w: %w", fs.ErrExist, explain(err))
	}
	return explain(err)
}

// ReadAt is one ranged request.
func (b *bucket) ReadAt(ctx context.Context, key string, p []byte, off int64) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	r, err := b.b.NewRangeReader(ctx, key, off, int64(len(p)), nil)
	switch {
	case statusOf(err) == statusBeyondTheEnd:
		return 0, io.EOF
	case err != nil:
		return 0, explain(err)
	}
	defer r.Close()
	n, err := io.ReadFull(r, p)
	if err == nil {
		return n, nil
	}
	if off+int64(n) >= r.Size() {
		return n, io.EOF
	}
	return n, explain(fmt.Errorf("after %d of %d bytes: %w", n, len(p), err))
}

// Stat asks for an object's attributes.
func (b *bucket) Stat(ctx context.Context, key string) (device.ObjectInfo, error) {
	attributes, err := b.b.Attributes(ctx, key)
	if err != nil {
		return device.ObjectInfo{}, explain(err)
	}
	crc, err := strconv.ParseUint(attributes.Metadata[crcKey], 16, 32)
	return device.ObjectInfo{Bytes: attributes.Size, CRC: uint32(crc), HasCRC: err == nil}, nil
}

// List reads all pages.
func (b *bucket) List(ctx context.Context, prefix string) ([]string, error) {
	var keys []string
	objects := b.b.List(&blob.ListOptions{Prefix: prefix})
	for {
		o, err := objects.Next(ctx)
		switch {
		case err == io.EOF:
			return keys, nil
		case err != nil:
			return nil, explain(err)
		}
		keys = append(keys, o.Key)
	}
}

// Delete does not mind an absent object.
func (b *bucket) Delete(ctx context.Context, key string) error {
	err := explain(b.b.Delete(ctx, key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Close ends the use of the bucket. Idle connections close by themselves after a
// while.
func (b *bucket) Close() error { return b.b.Close() }
