package device

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Objects is a flat store of objects, as much of it as the blob tier needs. Folder
// is one; package engine/device/cloud adds those of the cloud providers.
//
// Errors: an absent object is fs.ErrNotExist, one that is there already is
// fs.ErrExist.
type Objects interface {
	// Put writes an object, whole or not at all, and replaces one of that key. The
	// store is asked to refuse bytes that do not have the checksum.
	Put(ctx context.Context, key string, r io.ReaderAt, size int64, sum Checksum) error
	// PutNew writes an object if there is none of that key. Of any number of callers
	// on any number of machines at most one succeeds.
	PutNew(ctx context.Context, key string, data []byte) error
	// ReadAt follows io.ReaderAt.
	ReadAt(ctx context.Context, key string, p []byte, off int64) (int, error)
	Stat(ctx context.Context, key string) (ObjectInfo, error)
	// List names all objects whose key begins with prefix, in any order.
	List(ctx context.Context, prefix string) ([]string, error)
	// Delete is content if there is no such object.
	Delete(ctx context.Context, key string) error
	// Retryable tells whether the same call may succeed a little later.
	Retryable(err error) bool
	Close() error
}

// Checksum is what the bytes of an object must add up to.
type Checksum struct {
	CRC uint32 // CRC-32C
	MD5 []byte // for stores that check nothing else
}

// ObjectInfo describes an object.
type ObjectInfo struct {
	Bytes int64
	CRC   uint32 // CRC-32C of its content, as far as HasCRC
	// HasCRC is false for objects that somebody else wrote.
	HasCRC bool
}

// OpenObjects opens the store that a URL names.
type OpenObjects func(ctx context.Context, u *url.URL) (Objects, error)

var (
	openersMu sync.RWMutex
	openers   = map[string]OpenObjects{"file": openFolder}
)

// RegisterObjects adds a URL scheme; packages of drivers call it when they are
// imported.
func RegisterObjects(scheme string, open OpenObjects) {
	openersMu.Lock()
	defer openersMu.Unlock()
	openers[scheme] = open
}

func openObjects(ctx context.Context, raw string) (Objects, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("blob URL: %w: write it like s3://bucket/prefix or file:///dir", err)
	}
	openersMu.RLock()
	open, ok := openers[u.Scheme]
	known := strings.Join(slices.Sorted(maps.Keys(openers)), ", ")
	openersMu.RUnlock()
	if !ok {
		return nil, fmt.Errorf("blob URL %s: scheme %q is none of %s: Go programs import _ %q for s3, azblob and gs",
			redact(raw), u.Scheme, known, "github.com/ostrodb/ostro/engine/device/cloud")
	}
	objects, err := open(ctx, u)
	if err != nil {
		return nil, fmt.Errorf("open blob tier %s: %w", redact(raw), err)
	}
	return objects, nil
}

// redact leaves out what may be secret: the user and the parameters.
func redact(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "(unreadable)"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
