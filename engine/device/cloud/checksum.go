package cloud

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/crc32"
	"io"

	"cloud.google.com/go/storage"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	azureblob "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager/types"

	"github.com/ostrodb/ostro/engine/device"
)

// requireChecksum makes the store refuse damaged bytes: S3 (if it may be asked) and
// Google those that do not have our CRC-32C, Azure those that do not have the CRC-64
// that its library takes of each block. as gives the request of the one at hand.
func requireChecksum(as func(any) bool, sum device.Checksum, askS3 bool) {
	var s3 *transfermanager.UploadObjectInput
	var google *storage.Writer
	var azure *azblob.UploadStreamOptions
	switch {
	case as(&s3):
		if askS3 {
			s3.ChecksumAlgorithm = types.ChecksumAlgorithmCrc32c
			s3.ChecksumCRC32C = aws.String(base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum.CRC)))
		}
	case as(&google):
		google.CRC32C, google.SendCRC32C = sum.CRC, true
	case as(&azure):
		azure.HTTPHeaders.BlobContentMD5 = sum.MD5
		azure.TransactionalValidation = azureblob.TransferValidationTypeComputeCRC64()
	}
}

// checkedReader fails instead of ending if what it gave does not have its checksum,
// so that the write is given up.
type checkedReader struct {
	r    io.Reader
	sum  hash.Hash32
	want uint32
}

func newCheckedReader(r io.ReaderAt, size int64, crc uint32) io.Reader {
	return &checkedReader{
		r:    io.NewSectionReader(r, 0, size),
		sum:  crc32.New(crc32.MakeTable(crc32.Castagnoli)),
		want: crc,
	}
}

func (r *checkedReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	r.sum.Write(p[:n])
	if got := r.sum.Sum32(); err == io.EOF && got != r.want {
		err = fmt.Errorf("%w: the bytes to send have checksum %08x, not %08x", device.ErrCorrupt, got, r.want)
	}
	return n, err
}
