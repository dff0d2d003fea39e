package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// tier reads the source's segments in the shared blob tier. What lies there is the same for ever, and the source changes
// nothing of the ranges any more: so a record comes from there with one read, and the source is not asked. It is
// asked for what is not there, or not any more, or if the tier does not answer in time.
type tier struct {
	blob *device.Blob

	mu      sync.Mutex
	known   map[record.SegmentID]device.ManifestSegment
	loaded  time.Time // when that was read
	resting time.Time // until when nothing is read, as something failed
}

const (
	// tierNews is after which time it is worth to look whether the source has uploaded a segment meanwhile.
	tierNews = 2 * time.Second
	// tierPatience is how long the tier has for a record, tierRest for how long it is left alone after it failed.
	tierPatience = 3 * time.Second
	tierRest     = 10 * time.Second
	// segmentPatience is how long it has for a whole segment.
	segmentPatience = 30 * time.Second
	// tierReads is how many records are read at once.
	tierReads = 16
	// entryBytes is how much is read of a record at first: most are not longer.
	entryBytes = 4096
)

// newTier gives the part of a log in a bucket; nil if there is none.
func newTier(b *device.Bucket, log record.LogID) *tier {
	if b == nil || log == 0 {
		return nil
	}
	return &tier{blob: b.Log(log)}
}

// has tells whether the tier holds a segment, as far as is known.
func (t *tier) has(ctx context.Context, id record.SegmentID) (m device.ManifestSegment, ok bool) {
	if t == nil || id == 0 {
		return m, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Now().Before(t.resting) {
		return m, false
	}
	if m, ok = t.known[id]; ok || time.Since(t.loaded) < tierNews {
		return m, ok
	}
	ctx, cancel := context.WithTimeout(ctx, tierPatience)
	defer cancel()
	man, err := t.blob.LoadManifest(ctx)
	if err != nil {
		t.resting = time.Now().Add(tierRest)
		return m, false
	}
	t.loaded, t.known = time.Now(), make(map[record.SegmentID]device.ManifestSegment, len(man.Segments))
	for _, s := range man.Segments {
		t.known[s.ID] = s
	}
	m, ok = t.known[id]
	return m, ok
}

// failed notes that a segment is not there any more, or that the tier is to be left alone for a while.
func (t *tier) failed(id record.SegmentID, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, device.ErrCorrupt) {
		delete(t.known, id)
		return
	}
	t.resting = time.Now().Add(tierRest)
}

// entry reads the record at an offset.
func (t *tier) entry(ctx context.Context, m device.ManifestSegment, off uint32) ([]byte, error) {
	left := m.Bytes - int64(off)
	if left < record.HeaderBytes {
		return nil, fmt.Errorf("%w: an indirection to %d of %d bytes", device.ErrCorrupt, off, m.Bytes)
	}
	b := make([]byte, min(entryBytes, left))
	if err := t.read(ctx, m.ID, b, int64(off)); err != nil {
		return nil, err
	}
	n := record.PtrOf(b).Length()
	if n < record.HeaderBytes || int64(n) > left {
		return nil, fmt.Errorf("%w: an entry of %d bytes", device.ErrCorrupt, n)
	}
	if n > len(b) {
		whole := make([]byte, n)
		if err := t.read(ctx, m.ID, whole[copy(whole, b):], int64(off)+int64(len(b))); err != nil {
			return nil, err
		}
		b = whole
	}
	if !record.PtrOf(b[:n]).CRCValid() {
		return nil, fmt.Errorf("%w: an entry that has not its checksum", device.ErrCorrupt)
	}
	return b[:n:n], nil
}

func (t *tier) read(ctx context.Context, id record.SegmentID, b []byte, off int64) error {
	n, err := t.blob.ReadAt(ctx, id, b, off)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %d bytes of %d", device.ErrCorrupt, n, len(b))
	}
	return err
}

// segment reads a whole segment.
func (t *tier) segment(ctx context.Context, m device.ManifestSegment) ([]byte, error) {
	b := make([]byte, m.Bytes)
	if err := t.read(ctx, m.ID, b, 0); err != nil {
		return nil, err
	}
	return b, m.Check(b)
}

// tierRead is a record that is to be read.
type tierRead struct {
	at    store.Indirection
	in    device.ManifestSegment
	entry []byte
	err   error
}

// readTier brings cold records at some places from the shared tier. It returns the places for which the source must be
// asked.
func (p *pulls) readTier(ctx context.Context, one *puller, places []record.Place) (left []record.Place, err error) {
	if p.tier == nil {
		return places, nil
	}
	reads := make([][]tierRead, len(places))
	for i, place := range places {
		if reads[i], err = p.listTier(ctx, one, place); err != nil {
			return nil, err
		}
	}
	p.tier.all(ctx, reads)
	for i, place := range places {
		whole, err := p.takeTier(ctx, one, reads[i])
		if err != nil {
			return nil, err
		}
		if !whole {
			left = append(left, place)
		}
	}
	return left, nil
}

// listTier lists what is to be read for a place; nothing if not all of it is in the tier.
func (p *pulls) listTier(ctx context.Context, one *puller, place record.Place) (reads []tierRead, err error) {
	list, err := one.worker.Where(place)
	if err != nil {
		return nil, err
	}
	for _, i := range list {
		in, ok := p.tier.has(ctx, i.Segment)
		if !ok {
			return nil, nil
		}
		reads = append(reads, tierRead{at: i, in: in})
	}
	return reads, nil
}

// all reads, some at a time.
func (t *tier) all(ctx context.Context, reads [][]tierRead) {
	ctx, cancel := context.WithTimeout(ctx, tierPatience)
	defer cancel()
	var under sync.WaitGroup
	turns := make(chan struct{}, tierReads)
	for i := range reads {
		for j := range reads[i] {
			r := &reads[i][j]
			turns <- struct{}{}
			under.Go(func() {
				defer func() { <-turns }()
				if r.entry, r.err = t.entry(ctx, r.in, r.at.Offset); r.err != nil {
					t.failed(r.in.ID, r.err)
				}
			})
		}
	}
	under.Wait()
}

// takeTier imports what was read for a place; false if that is not all there is.
func (p *pulls) takeTier(ctx context.Context, one *puller, reads []tierRead) (whole bool, err error) {
	whole = len(reads) > 0
	for _, r := range reads {
		if r.err != nil {
			whole = false
			continue
		}
		done, err := one.worker.ResolveEntry(ctx, r.at, r.entry)
		if err != nil {
			return false, err
		}
		if !done {
			whole = false
			continue
		}
		p.m.cold.shared.Add(1)
		p.m.records.Add(1)
		p.m.bytes.Add(int64(len(r.entry)))
	}
	return whole, nil
}

// settleFromTier brings all that is known of in a segment from the shared tier; false if the source must be asked.
func (p *pulls) settleFromTier(ctx context.Context, one *puller, id record.SegmentID) (bool, error) {
	in, ok := p.tier.has(ctx, id)
	if !ok {
		return false, nil
	}
	began := time.Now()
	reading, cancel := context.WithTimeout(ctx, segmentPatience)
	b, err := p.tier.segment(reading, in)
	cancel()
	if err != nil {
		p.tier.failed(id, err)
		return false, ctx.Err()
	}
	n, bytes, err := one.worker.ResolveSegment(ctx, id, b)
	p.m.cold.shared.Add(n)
	p.m.records.Add(n)
	p.m.bytes.Add(bytes)
	if err != nil {
		return false, err
	}
	return true, p.rest(ctx, time.Since(began))
}
