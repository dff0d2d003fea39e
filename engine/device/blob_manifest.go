package device

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// How two writers can never both win. Every version is an object of its own, and
// PutNew lets one writer create it. That alone is not enough, because old versions
// are removed: a writer that slept through many replacements could create a version
// anew whose number is free again. So a replacement counts only if, after its
// object was created, the version before it is still there with the stamp that the
// writer had loaded. Versions are removed in increasing order, never the newest
// ones: as long as the predecessor was never removed, neither was the version
// itself, and so its creation was the first. Leftovers of late writers harm nobody,
// for the highest version counts. docs/adr/0003-blob-manifest.md tells more.

// manifestsKept is how many versions stay. A writer that falls behind by so many
// between its creation and its check is told of a conflict although it had won;
// when it loads again it finds its own work.
const manifestsKept = 16

// manifestLoads bounds how often a load follows a manifest that is replaced so
// fast that it is removed between being listed and read.
const manifestLoads = 10

// LoadManifest reads the newest manifest; version 0 if there is none.
func (b *Blob) LoadManifest(ctx context.Context) (Manifest, error) {
	b.manifestMu.Lock()
	defer b.manifestMu.Unlock()
	for n := 1; ; n++ {
		m, err := b.loadNewest(ctx)
		if err == nil || !isMissing(err) || n == manifestLoads {
			return m, err
		}
	}
}

func (b *Blob) loadNewest(ctx context.Context) (Manifest, error) {
	versions, err := b.manifestVersions(ctx)
	if err != nil {
		return Manifest{}, err
	}
	if len(versions) == 0 {
		b.known = manifestMark{}
		return Manifest{Log: b.log}, nil
	}
	version := versions[len(versions)-1]
	data, err := b.readObject(ctx, b.manifestKey(version))
	if err != nil {
		return Manifest{}, b.failManifest("load", version, err)
	}
	m, mark, err := decodeManifest(data, version, b.log)
	if err != nil {
		return Manifest{}, b.failManifest("load", version, err)
	}
	b.known = mark
	return m, nil
}

// ReplaceManifest makes m the manifest. Its version must be the one after that
// which this Blob last loaded or wrote. If another writer was faster, the error is
// ErrManifestConflict and m has no effect, or none that the next load does not
// show. After any other error nobody knows: load again.
func (b *Blob) ReplaceManifest(ctx context.Context, m Manifest) error {
	b.manifestMu.Lock()
	defer b.manifestMu.Unlock()
	if m.Version != b.known.version+1 {
		return b.failManifest("replace", m.Version, fmt.Errorf("%w: version %d is the one known here", ErrManifestConflict, b.known.version))
	}
	mark := manifestMark{version: m.Version, stamp: newStamp()}
	m.Log = b.log
	data, err := encodeManifest(m, mark.stamp)
	if err == nil {
		err = b.probe(ctx)
	}
	if err == nil {
		err = b.createManifest(ctx, mark, data)
	}
	if err == nil {
		err = b.confirmFirst(ctx, mark.version)
	}
	if err != nil {
		return b.failManifest("replace", m.Version, err)
	}
	b.known = mark
	b.metrics.manifestReplaces.Add(1)
	b.removeOldManifests(ctx)
	return nil
}

// createManifest creates the object of a version. When the answer to an attempt
// got lost, the next one finds the object there: the stamp tells whose it is.
func (b *Blob) createManifest(ctx context.Context, mark manifestMark, data []byte) error {
	key := b.manifestKey(mark.version)
	err := b.retry.do(ctx, func(ctx context.Context) error { return b.objects.PutNew(ctx, key, data) })
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	stamp, err := b.stampAt(ctx, mark.version)
	if err == nil && stamp != mark.stamp {
		return ErrManifestConflict
	}
	return err
}

// confirmFirst makes sure that nobody had created the version before.
func (b *Blob) confirmFirst(ctx context.Context, version uint64) error {
	if version == 1 {
		return b.confirmOnly(ctx)
	}
	stamp, err := b.stampAt(ctx, version-1)
	if isMissing(err) || err == nil && stamp != b.known.stamp {
		return ErrManifestConflict
	}
	return err
}

// confirmOnly is for the first version, which has no predecessor to ask for.
func (b *Blob) confirmOnly(ctx context.Context) error {
	versions, err := b.manifestVersions(ctx)
	if err == nil && !slices.Equal(versions, []uint64{1}) {
		return ErrManifestConflict
	}
	return err
}

func (b *Blob) stampAt(ctx context.Context, version uint64) (string, error) {
	head := make([]byte, manifestHead)
	if _, err := b.readAll(ctx, b.manifestKey(version), head, 0); err != nil && !isEOF(err) {
		return "", err
	}
	stamp, ok := stampOf(head)
	if !ok {
		return "", fmt.Errorf("%w: manifest %d does not begin with a stamp", ErrCorrupt, version)
	}
	return stamp, nil
}

// probe finds out once whether the store refuses to create an object twice: some
// that speak S3 ignore the condition, and then no manifest is safe there.
func (b *Blob) probe(ctx context.Context) error {
	for range 2 {
		if b.trusted {
			return nil
		}
		err := b.retry.do(ctx, func(ctx context.Context) error {
			return b.objects.PutNew(ctx, b.prefix+"conditional", []byte("This object must be written only once.\n"))
		})
		switch {
		case errors.Is(err, fs.ErrExist):
			b.trusted = true
		case err != nil:
			return err
		}
	}
	if !b.trusted {
		return errors.New("the store ignores conditional writes (If-None-Match): two writers could overwrite each other, use another store")
	}
	return nil
}

// removeOldManifests removes all but the newest, in increasing order, and stops at
// the first failure: the order is what confirmFirst relies on. What stays is
// removed another time.
func (b *Blob) removeOldManifests(ctx context.Context) {
	versions, err := b.manifestVersions(ctx)
	for err == nil && len(versions) > manifestsKept {
		key := b.manifestKey(versions[0])
		err = b.retry.do(ctx, func(ctx context.Context) error { return b.objects.Delete(ctx, key) })
		versions = versions[1:]
	}
	if err != nil {
		b.logger.Warn("old manifests stay in the blob tier for now", "tier", b.url, "error", err)
	}
}

// manifestVersions lists the versions that are there, in increasing order.
func (b *Blob) manifestVersions(ctx context.Context) ([]uint64, error) {
	prefix := b.prefix + "manifest/"
	keys, err := retried(ctx, &b.retry, func(ctx context.Context) ([]string, error) { return b.objects.List(ctx, prefix) })
	if err != nil {
		b.metrics.failures.Add(1)
		return nil, fmt.Errorf("blob tier %s: list manifests: %w", b.url, err)
	}
	versions := make([]uint64, 0, len(keys))
	for _, key := range keys {
		if version, ok := parseManifestName(strings.TrimPrefix(key, prefix)); ok {
			versions = append(versions, version)
		}
	}
	slices.Sort(versions)
	return versions, nil
}

// readObject reads the whole of a small object.
func (b *Blob) readObject(ctx context.Context, key string) ([]byte, error) {
	info, err := retried(ctx, &b.retry, func(ctx context.Context) (ObjectInfo, error) { return b.objects.Stat(ctx, key) })
	if err != nil {
		return nil, err
	}
	data := make([]byte, info.Bytes)
	n, err := b.readAll(ctx, key, data, 0)
	if n == len(data) && isEOF(err) {
		err = nil
	}
	return data[:n], err
}

func (b *Blob) manifestKey(version uint64) string {
	return b.prefix + "manifest/" + manifestName(version)
}

func (b *Blob) failManifest(act string, version uint64, err error) error {
	if errors.Is(err, ErrManifestConflict) {
		b.metrics.manifestConflicts.Add(1)
	} else {
		b.metrics.failures.Add(1)
	}
	return fmt.Errorf("blob tier %s: %s manifest %d of log %016x: %w", b.url, act, version, uint64(b.log), err)
}
