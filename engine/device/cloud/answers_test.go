package cloud

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
)

// answer is what a provider says to every request.
type answer struct {
	status  int
	code    string // the provider's own word for it
	provide string // the provider: s3, azblob or gs
}

func (a answer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("x-ms-error-code", a.code)
	if a.provide == "gs" {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(a.status)
		fmt.Fprintf(w, `{"error":{"code":%d,"message":"%s"}}`, a.status, a.code)
		return
	}
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(a.status)
	fmt.Fprintf(w, `<?xml version="1.0"?><Error><Code>%s</Code><Message>no</Message></Error>`, a.code)
}

// openAt opens a bucket whose provider is a server that always says the same.
func openAt(t *testing.T, a answer) device.Objects {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	address := strings.TrimPrefix(server.URL, "http://")
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_MAX_ATTEMPTS": "1",
		"AZURE_STORAGE_ACCOUNT": "account", "AZURE_STORAGE_KEY": "a2V5",
		"STORAGE_EMULATOR_HOST": address,
	} {
		t.Setenv(name, value)
	}
	place := map[string]string{
		"s3":     "s3://bucket/prefix?region=us-east-1&use_path_style=true&endpoint=http://" + address,
		"azblob": "azblob://bucket/prefix?localemu=true&protocol=http&domain=" + address,
		"gs":     "gs://bucket/prefix?anonymous=true",
	}[a.provide]
	u, err := url.Parse(place)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := open(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = objects.Close() })
	return objects
}

func TestEveryProvidersRefusalIsUnderstood(t *testing.T) {
	for _, test := range []struct {
		answer    answer
		exists    bool // of PutNew
		missing   bool // of Stat
		retryable bool
	}{
		{answer: answer{412, "PreconditionFailed", "s3"}, exists: true},
		{answer: answer{412, "conditionNotMet", "gs"}, exists: true},
		{answer: answer{409, "BlobAlreadyExists", "azblob"}, exists: true},
		{answer: answer{412, "ConditionNotMet", "azblob"}, exists: true},
		{answer: answer{409, "ConditionalRequestConflict", "s3"}, retryable: true},
		{answer: answer{400, "BadDigest", "s3"}, retryable: true},
		{answer: answer{400, "InvalidRequest", "s3"}},
		{answer: answer{403, "AccessDenied", "s3"}},
		{answer: answer{403, "AuthenticationFailed", "azblob"}},
		{answer: answer{401, "authError", "gs"}},
		{answer: answer{404, "NoSuchBucket", "s3"}, missing: true},
		{answer: answer{404, "ContainerNotFound", "azblob"}, missing: true},
		{answer: answer{404, "notFound", "gs"}, missing: true},
		{answer: answer{501, "NotImplemented", "s3"}, retryable: true},
	} {
		t.Run(fmt.Sprintf("%s %d %s", test.answer.provide, test.answer.status, test.answer.code), func(t *testing.T) {
			o := openAt(t, test.answer)
			put := o.Put(t.Context(), "key", bytes.NewReader([]byte("data")), 4, device.Checksum{CRC: 0xaed87dd1, MD5: make([]byte, 16)})
			putNew := o.PutNew(t.Context(), "key", []byte("data"))
			_, stat := o.Stat(t.Context(), "key")
			if put == nil || putNew == nil || stat == nil {
				t.Fatalf("a refusal was taken for success: %v, %v, %v", put, putNew, stat)
			}
			if got := errors.Is(putNew, fs.ErrExist); got != test.exists {
				t.Errorf("PutNew: %v", putNew)
			}
			if got := errors.Is(stat, fs.ErrNotExist); got != test.missing {
				t.Errorf("Stat: %v", stat)
			}
			if got := o.Retryable(putNew); got != test.retryable {
				t.Errorf("retryable is %v: %v", got, putNew)
			}
			if strings.Contains(putNew.Error(), "\n") {
				t.Errorf("the error is longer than a line: %v", putNew)
			}
		})
	}
}
