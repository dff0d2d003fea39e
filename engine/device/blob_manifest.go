package device

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// How two writers can never both win. Every version is an object of its own, which
// PutNew lets one writer create. That alone is not enough, because old versions are
// removed: a writer that slept through many replacements could create a version
// anew whose number is free again. Therefore:
//
//   - The highest version counts, and the newest ones are never removed. So what
//     is created late is never the highest, and nobody ever loads it.
//   - Each manifest carries the stamps of those before it, each of which was the
//     highest when its successor's writer loaded it.
//   - So a replacement has won if it is the highest, or if the highest remembers
//     its stamp; it has lost if the highest remembers another one.
//
// It is enough that the store lists what was written before the listing began, as
// all four do. docs/adr/0007-blob-manifest.md tells more.

// manifestsKept is how many versions stay, for readers that are about to read them,
// and how often the others are removed.
const manifestsKept = 16

// manifestLoads bounds how often a load follows a manifest that is replaced so
// fast that it is removed between being listed and read.
const manifestLoads = 10

// LoadManifest reads the newest manifest; version 0 if there is none.
func (b *Blob) LoadManifest(ctx context.Context) (Manifest, error) {
	b.manifestMu.Lock()
	defer b.manifestMu.Unlock()
	m, mark, err := b.loadNewest(ctx)
	if err != nil {
		return Manifest{}, err
	}
	b.known = mark
	return m, nil
}

func (b *Blob) loadNewest(ctx context.Context) (m Manifest, mark manifestMark, err error) {
	for range manifestLoads {
		versions, err := b.manifestVersions(ctx)
		switch {
		case err != nil:
			return Manifest{}, manifestMark{}, err
		case len(versions) == 0:
			return Manifest{Log: b.log}, manifestMark{}, nil
		}
		m, mark, err = b.loadVersion(ctx, versions[len(versions)-1])
		if !isMissing(err) {
			return m, mark, err
		}
	}
	return m, mark, err
}

func (b *Blob) loadVersion(ctx context.Context, version uint64) (Manifest, manifestMark, error) {
	data, err := b.readObject(ctx, b.manifestKey(version))
	if err != nil {
		return Manifest{}, manifestMark{}, b.failManifest("load", version, err)
	}
	m, mark, err := decodeManifest(data, version, b.log)
	if err != nil {
		return Manifest{}, manifestMark{}, b.failManifest("load", version, err)
	}
	return m, mark, nil
}

// ReplaceManifest makes m the manifest. Its version must be the one after that
// which this Blob last loaded or wrote. If another writer was faster, the error is
// ErrManifestConflict and m has no effect. If it is ErrManifestUnknown, m may have
// become the manifest, or may still do so, or an earlier m of unknown outcome has:
// load again. After other errors m has no effect.
func (b *Blob) ReplaceManifest(ctx context.Context, m Manifest) error {
	b.manifestMu.Lock()
	defer b.manifestMu.Unlock()
	mark := b.known.next()
	if m.Version != mark.version {
		return b.failManifest("replace", m.Version, fmt.Errorf("%w: version %d is the one known here", ErrManifestConflict, b.known.version))
	}
	m.Log = b.log
	data, err := encodeManifest(m, mark)
	if err == nil {
		err = b.probe(ctx)
	}
	if err == nil {
		err = b.createManifest(ctx, mark, data)
	}
	if err != nil {
		return b.failManifest("replace", m.Version, err)
	}
	b.known = mark
	clear(b.unsettled)
	b.metrics.manifestReplaces.Add(1)
	if mark.version%manifestsKept == 0 {
		b.removeOldManifests(ctx)
	}
	return nil
}

// createManifest creates the object of a version and finds out who won. That the
// object was there does not mean that it is another writer's: the answer to an
// earlier attempt may have got lost.
func (b *Blob) createManifest(ctx context.Context, mark manifestMark, data []byte) error {
	key := b.manifestKey(mark.version)
	put := b.retry.do(ctx, func(ctx context.Context) error { return b.objects.PutNew(ctx, key, data) })
	if put != nil && !errors.Is(put, fs.ErrExist) {
		return b.unknown(mark, put)
	}
	versions, err := b.manifestVersions(ctx)
	if err == nil && put == nil && len(versions) > 0 && versions[len(versions)-1] == mark.version {
		return nil
	}
	_, newest, err := b.loadNewest(ctx)
	if err != nil {
		return b.unknown(mark, err)
	}
	stamp, ok := newest.stampOf(mark.version)
	switch {
	case !ok:
		return b.unknown(mark, fmt.Errorf("version %d is the newest by now and does not remember %d", newest.version, mark.version))
	case stamp == mark.stamp:
		return nil
	case b.unsettled[stamp]:
		return fmt.Errorf("%w: an earlier replacement, whose answer got lost, did happen", ErrManifestUnknown)
	default:
		return ErrManifestConflict
	}
}

// unknown remembers a replacement that may have happened.
func (b *Blob) unknown(mark manifestMark, err error) error {
	b.unsettled[mark.stamp] = true
	return fmt.Errorf("%w: %w", ErrManifestUnknown, err)
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

// removeOldManifests removes all but the newest. What cannot be removed now is
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
