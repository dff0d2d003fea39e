package cloud

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	"gocloud.dev/gcerrors"
	"google.golang.org/api/googleapi"

	"github.com/ostrodb/ostro/engine/device"
)

const statusBeyondTheEnd = http.StatusRequestedRangeNotSatisfiable

// explain gives an error the meaning that device.Objects promises, and tells what
// to do where somebody can do something.
func explain(err error) error {
	if err == nil {
		return nil
	}
	if e := (*azcore.ResponseError)(nil); errors.As(err, &e) {
		err = brief{fmt.Sprintf("Azure answered %d %s", e.StatusCode, e.ErrorCode), err}
	}
	switch gcerrors.Code(err) {
	case gcerrors.NotFound:
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	case gcerrors.PermissionDenied:
		return fmt.Errorf("access denied: check the credentials and that they may list, read, write and delete: %w", err)
	}
	return err
}

// brief is an error whose own text is a page long.
type brief struct {
	text string
	error
}

func (b brief) Error() string { return b.text }
func (b brief) Unwrap() error { return b.error }

// Retryable takes what is not plainly the request's own fault for passing: the
// network, a server that is busy, restarting or broken, two conditional requests
// that met (409), and bytes that arrived damaged.
func (b *bucket) Retryable(err error) bool {
	if errors.Is(err, device.ErrCorrupt) {
		return false
	}
	switch gcerrors.Code(err) {
	case gcerrors.NotFound, gcerrors.AlreadyExists, gcerrors.InvalidArgument, gcerrors.FailedPrecondition,
		gcerrors.PermissionDenied, gcerrors.Unimplemented, gcerrors.Canceled:
		return false
	}
	switch status := statusOf(err); status {
	case 0, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return true
	default:
		return status >= 500 || damaged(err)
	}
}

// damaged tells whether S3 refused a request because its bytes did not have the
// checksum or signature they came with.
func damaged(err error) bool {
	var e smithy.APIError
	if !errors.As(err, &e) {
		return false
	}
	switch e.ErrorCode() {
	case "BadDigest", "InvalidDigest", "XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch":
		return true
	}
	return false
}

// statusOf is the HTTP status that a provider answered, 0 if none did.
func statusOf(err error) int {
	if e := (*awshttp.ResponseError)(nil); errors.As(err, &e) {
		return e.HTTPStatusCode()
	}
	if e := (*azcore.ResponseError)(nil); errors.As(err, &e) {
		return e.StatusCode
	}
	if e := (*googleapi.Error)(nil); errors.As(err, &e) {
		return e.Code
	}
	return 0
}
