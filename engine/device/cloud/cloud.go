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
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager/types"
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

// Put hands the checksums to the store as far as it checks them: S3 the CRC-32C,
// Google the MD5. gocloud itself compares what it sent with the MD5.
func (b *bucket) Put(ctx context.Context, key string, r io.ReaderAt, size int64, sum device.Checksum) error {
	options := &blob.WriterOptions{
		ContentType: "application/octet-stream",
		ContentMD5:  sum.MD5,
		Metadata:    map[string]string{crcKey: fmt.Sprintf("%08x", sum.CRC)},
	}
	if size < onePut && !b.plain {
		options.BeforeWrite = func(as func(any) bool) error { return requireCRC(as, sum.CRC) }
	}
	err := b.b.Upload(ctx, key, io.NewSectionReader(r, 0, size), options)
	if gcerrors.Code(err) == gcerrors.FailedPrecondition {
		return fmt.Errorf("%w: the bytes changed while they were sent: %w", device.ErrCorrupt, err)
	}
	return explain(err)
}

// requireCRC makes S3 refuse other bytes. Other stores do not know the type asked
// for.
func requireCRC(as func(any) bool, crc uint32) error {
	var input *transfermanager.UploadObjectInput
	if as(&input) {
		input.ChecksumAlgorithm = types.ChecksumAlgorithmCrc32c
		input.ChecksumCRC32C = aws.String(base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc)))
	}
	return nil
}

// PutNew is a conditional write: If-None-Match or its like.
func (b *bucket) PutNew(ctx context.Context, key string, data []byte) error {
	err := b.b.WriteAll(ctx, key, data, &blob.WriterOptions{ContentType: "application/json", IfNotExist: true})
	if gcerrors.Code(err) == gcerrors.FailedPrecondition {
		return fmt.Errorf("%w: %w", fs.ErrExist, err)
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

// Close gives the connections back.
func (b *bucket) Close() error { return b.b.Close() }
