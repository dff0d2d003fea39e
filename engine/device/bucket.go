package device

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/ostrodb/ostro/engine/record"
)

// Bucket is the blob tier of a cluster: the logs of all its nodes, each under a prefix of its own. It
// reads other nodes' segments, and removes logs that are over. Only the node whose log it is writes there.
type Bucket struct {
	objects Objects
	url     string
	logger  *slog.Logger
	blobs   sync.Map // record.LogID -> *Blob
}

// OpenBucket opens what a URL names, as OpenBlob does.
func OpenBucket(ctx context.Context, url string, logger *slog.Logger) (*Bucket, error) {
	objects, err := openObjects(ctx, url)
	if err != nil {
		return nil, err
	}
	return &Bucket{objects: objects, url: redact(url), logger: logger}, nil
}

// Log is the part of one log, to read from. It is closed with the bucket.
func (b *Bucket) Log(id record.LogID) *Blob {
	if known, ok := b.blobs.Load(id); ok {
		return known.(*Blob)
	}
	one := NewBlob(b.objects, id, b.logger)
	one.url = b.url
	known, _ := b.blobs.LoadOrStore(id, one)
	return known.(*Blob)
}

// RemoveLog removes all that there is of a log, and returns how many objects that were. Nobody may need it: it is for
// logs that others have taken over. If its writer does not know that yet and writes some more, it is removed
// when it is called again. Manifests go last: who looks in between finds that segments are missing, and not
// that there were none.
func (b *Bucket) RemoveLog(ctx context.Context, id record.LogID) (removed int, err error) {
	one := b.Log(id)
	keys, err := retried(ctx, &one.retry, func(ctx context.Context) ([]string, error) { return b.objects.List(ctx, one.prefix) })
	if err != nil {
		return 0, fmt.Errorf("blob tier %s: list log %016x: %w", b.url, uint64(id), err)
	}
	slices.SortFunc(keys, func(x, y string) int {
		if m := isManifestKey(x) - isManifestKey(y); m != 0 {
			return m
		}
		return strings.Compare(x, y)
	})
	for _, key := range keys {
		if err := one.retry.do(ctx, func(ctx context.Context) error { return b.objects.Delete(ctx, key) }); err != nil {
			return removed, fmt.Errorf("blob tier %s: remove %s: %w", b.url, key, err)
		}
		removed++
	}
	return removed, nil
}

func isManifestKey(key string) int {
	if strings.Contains(key, "/manifest/") {
		return 1
	}
	return 0
}

// Close ends the use of the store. Calls under way may fail.
func (b *Bucket) Close() error { return b.objects.Close() }
