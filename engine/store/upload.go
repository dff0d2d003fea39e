package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/background"
)

// The blob tier holds copies of closed segments. They are uploaded in the
// background, oldest first; a manifest, replaced by conditional writes, says
// which of them count. What the tier holds may leave the local disk.
//
// A segment leaves the manifest before the log forgets it: a tombstone may be
// dropped as soon as no segment can hold what it buried, and a segment that
// came back from the tier after that would bring a deleted record back.

// tier is the store's share of the blob tier.
type tier struct {
	blob *device.Blob
	mu   sync.Mutex // one change of the manifest at a time
	man  device.Manifest
	lost bool // another writer has replaced the manifest: hands off

	silent atomic.Int64 // when a read last waited for an answer in vain, in nanoseconds since 1970

	filelessMu sync.Mutex
	fileless   []record.SegmentID // whose files were dropped; see tieredMeta

	lastMu sync.Mutex // one is got at a time
	lastID record.SegmentID
	last   []byte // the last that was got elsewhere, as the tier did not give it
}

func (st *Store) openBlob(ctx context.Context) (err error) {
	if err := st.loadTiered(); err != nil {
		return err
	}
	if st.opts.BlobURL == "" {
		return nil
	}
	if st.tier.blob, err = device.OpenBlob(ctx, st.opts.BlobURL, st.opts.LogID, st.opts.Logger); err != nil {
		return fmt.Errorf("open the blob tier: %w", err)
	}
	st.tier.man, err = st.tier.blob.LoadManifest(ctx)
	return err
}

// How long a read waits for the tier where nobody else has copies, and where others have; after one in vain these are asked
// at once for a while. The clients and cleaners whose reads wait hold up others, of other nodes as well.
const (
	tierPatience  = time.Minute
	tierLonger    = time.Second // for each MiB
	tierAvoidance = 30 * time.Second
)

var tierImpatience = 3 * time.Second // tests change it

var errTierSilent = errors.New("the blob tier does not answer")

// readRemote reads from a segment that only the tier holds.
func (st *Store) readRemote(id record.SegmentID, p []byte, off int64) (int, error) {
	t := &st.tier
	if t.blob == nil {
		return 0, errors.New("the segment is in the blob tier: set the blob URL that it was uploaded to")
	}
	if st.opts.Elsewhere == nil {
		return t.read(id, p, off, tierPatience)
	}
	n, err := 0, errTierSilent
	if !t.avoided() {
		if n, err = t.read(id, p, off, tierImpatience+tierLonger*time.Duration(len(p)>>20)); n == len(p) {
			return n, err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), tierPatience)
	defer cancel()
	whole, other := st.elsewhere(ctx, id)
	if other != nil {
		return n, errors.Join(err, other)
	}
	if n = copy(p, whole[min(off, int64(len(whole))):]); n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// read asks the tier, and remembers when it did not answer.
func (t *tier) read(id record.SegmentID, p []byte, off int64, patience time.Duration) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	n, err := t.blob.ReadAt(ctx, id, p, off)
	if n < len(p) && ctx.Err() != nil {
		t.silent.Store(time.Now().UnixNano())
	}
	return n, err
}

// avoided tells whether a read has waited for the tier in vain a little ago.
func (t *tier) avoided() bool {
	at := t.silent.Load()
	return at != 0 && time.Since(time.Unix(0, at)) < tierAvoidance
}

// elsewhere gets a segment from those who keep copies of the log: they count, and the tier is only nearer. Who looks for
// many records in it looks again and again, so the last one stays at hand.
func (st *Store) elsewhere(ctx context.Context, id record.SegmentID) ([]byte, error) {
	t := &st.tier
	t.lastMu.Lock()
	defer t.lastMu.Unlock()
	if t.lastID == id && t.last != nil {
		return t.last, nil
	}
	b, err := st.opts.Elsewhere(ctx, id)
	if err == nil {
		t.lastID, t.last = id, b
	}
	return b, err
}

// uploadEvery is the pause between looks for segments to upload.
const uploadEvery = time.Second

func (st *Store) uploadLoop(ctx context.Context) {
	if st.tier.blob == nil {
		return
	}
	background.Quiet()
	every(ctx, uploadEvery, nil, func() {
		if !st.opts.MayUpload() {
			return
		}
		if err := st.uploadSome(ctx); err != nil && ctx.Err() == nil {
			st.opts.Logger.Error("upload to the blob tier failed; it is tried again", "error", err)
		}
		st.dropFiles()
	})
}

// uploadBatch is how many segments are uploaded between two manifests.
const uploadBatch = 16

// uploadSome uploads what the tier lacks, then says so in the manifest.
func (st *Store) uploadSome(ctx context.Context) error {
	var done []device.ManifestSegment
	var segs []*hlog.Segment
	for _, s := range st.log.Segments() {
		if s.Remote() || !st.worthUpload(s) || len(done) == uploadBatch {
			continue
		}
		m, err := st.uploadOne(ctx, s)
		if errors.Is(err, hlog.ErrGone) {
			continue
		}
		if err != nil {
			return err
		}
		done, segs = append(done, m), append(segs, s)
	}
	return st.announceUploads(ctx, segs, done)
}

// announceUploads says in the manifest what was uploaded, but for what was
// cleaned away meanwhile: it would come back in a recovery, though the
// tombstones of its records may be gone. No segment is cleaned at that moment.
func (st *Store) announceUploads(ctx context.Context, segs []*hlog.Segment, done []device.ManifestSegment) error {
	st.cleaning.Lock()
	defer st.cleaning.Unlock()
	var there []device.ManifestSegment
	for i, s := range segs {
		if st.log.ByID(s.ID) == s {
			there = append(there, done[i])
		} else if err := st.tier.blob.Remove(ctx, s.ID); err != nil {
			st.opts.Logger.Warn("a segment stays in the blob tier as garbage", "segment", s.ID, "error", err)
		}
	}
	if len(there) == 0 {
		return nil
	}
	err := st.tier.change(ctx, func(m *device.Manifest) { m.Segments = append(m.Segments, there...) })
	if err != nil {
		return err
	}
	for _, s := range segs {
		s.SetRemote() // Of those that are gone nobody asks.
	}
	st.work.uploaded.Add(int64(len(there)))
	return nil
}

// worthUpload leaves out segments that the cleaner will take soon.
func (st *Store) worthUpload(s *hlog.Segment) bool {
	return st.log.AtRest(s) && st.log.OnDisk(s) && float64(st.log.Live(s)) > (1-tidyVictim)*float64(s.End())
}

func (st *Store) uploadOne(ctx context.Context, s *hlog.Segment) (device.ManifestSegment, error) {
	b, err := st.log.Load(s)
	if err != nil {
		return device.ManifestSegment{}, err
	}
	sum := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	m := device.ManifestSegment{ID: s.ID, Bytes: int64(len(b)), CRC: sum, UploadedMillis: st.opts.Now()}
	return m, st.tier.blob.Upload(ctx, s.ID, bytes.NewReader(b), int64(len(b)), sum)
}

// change replaces the manifest by one that f has changed.
func (t *tier) change(ctx context.Context, f func(*device.Manifest)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost {
		return device.ErrManifestConflict
	}
	next := t.man
	next.Segments = slices.Clone(t.man.Segments)
	f(&next)
	next.Version++
	next.Writer = uint64(os.Getpid())
	err := t.blob.ReplaceManifest(ctx, next)
	switch {
	case err == nil:
		t.man = next
	case errors.Is(err, device.ErrManifestConflict):
		t.lost = true
		return fmt.Errorf("another server writes to this log's part of the blob tier; this one uploads no more: %w", err)
	case errors.Is(err, device.ErrManifestUnknown):
		// It may have been replaced or not: the next change starts from what is there.
		if now, e := t.blob.LoadManifest(ctx); e == nil {
			t.man = now
		}
	}
	return err
}

// leaveTier takes a segment out of the manifest, and then out of the tier.
func (st *Store) leaveTier(s *hlog.Segment) error {
	if !s.Remote() || st.tier.blob == nil {
		return nil
	}
	if err := st.forgetFileless(s.ID); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := st.tier.change(ctx, func(m *device.Manifest) {
		m.Segments = slices.DeleteFunc(m.Segments, func(e device.ManifestSegment) bool { return e.ID == s.ID })
	})
	if err != nil {
		return err
	}
	if err := st.tier.blob.Remove(ctx, s.ID); err != nil {
		st.opts.Logger.Warn("a segment stays in the blob tier as garbage", "segment", s.ID, "error", err)
	}
	return nil
}

// dropFiles takes the oldest uploaded segments off the local disk while it
// holds more than it should.
func (st *Store) dropFiles() {
	if st.opts.DiskBytes <= 0 {
		return
	}
	var used int64
	segs := st.log.Segments()
	for _, s := range segs {
		if st.log.OnDisk(s) {
			used += int64(s.End())
		}
	}
	var chosen []*hlog.Segment
	for _, s := range segs {
		if used > st.opts.DiskBytes && s.Remote() && st.log.OnDisk(s) && !st.log.InMemory(s) {
			chosen, used = append(chosen, s), used-int64(s.End())
		}
	}
	if err := st.dropThese(chosen); err != nil {
		st.opts.Logger.Error("segment files could not be dropped", "segments", len(chosen), "error", err)
	}
}

// dropThese takes files off the local disk. No segment is cleaned at that moment: one that leaves the log is not noted then.
func (st *Store) dropThese(segs []*hlog.Segment) error {
	st.cleaning.Lock()
	defer st.cleaning.Unlock()
	segs = slices.DeleteFunc(segs, func(s *hlog.Segment) bool { return st.log.ByID(s.ID) != s })
	if len(segs) == 0 {
		return nil
	}
	if err := st.noteFileless(segs); err != nil {
		return err
	}
	for _, s := range segs {
		if err := st.log.DropFile(s); err != nil {
			return err
		}
	}
	return nil
}

// restore brings segments that only the tier holds back to the local disk, for
// recovery reads all of them.
func (st *Store) restore(ctx context.Context) error {
	if st.tier.blob == nil {
		return st.findFileless(ctx)
	}
	local, err := st.dev.List()
	if err != nil {
		return err
	}
	for n, m := range st.tier.man.Segments {
		st.opts.Progress(Progress{Stage: "restore from the blob tier", Done: int64(n), Total: int64(len(st.tier.man.Segments)), Unit: "segments"})
		if _, ok := slices.BinarySearch(local, m.ID); ok {
			whole, err := st.holdsWhole(m)
			if err != nil {
				return err
			}
			if whole {
				continue
			}
		}
		if err := st.restoreOne(ctx, m); err != nil {
			return fmt.Errorf("restore segment %d from the blob tier: %w", m.ID, err)
		}
	}
	return st.findFileless(ctx)
}

// holdsWhole tells whether the local disk has all of a segment of the tier, and
// removes what it has otherwise: a process died while it restored or closed it.
func (st *Store) holdsWhole(m device.ManifestSegment) (bool, error) {
	f, err := st.dev.Open(m.ID)
	if err != nil {
		return false, err
	}
	defer f.Close()
	if f.Size() == m.Bytes {
		return true, nil
	}
	return false, st.dev.Remove(m.ID)
}

// restoreOne brings a segment back.
func (st *Store) restoreOne(ctx context.Context, m device.ManifestSegment) error {
	b, err := st.download(ctx, m)
	if err != nil {
		return err
	}
	return st.writeFile(m.ID, b)
}

// writeFile writes a segment to a file that is too long, and cuts it when all
// is there: so a file of the right size is whole.
func (st *Store) writeFile(id record.SegmentID, b []byte) error {
	f, err := st.dev.Create(id, len(b)+record.SealBytes)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteAt(b, 0); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Cut(int64(len(b)))
}

// download reads a whole segment of the tier, and checks it. If the tier does not give it, copies elsewhere may.
func (st *Store) download(ctx context.Context, m device.ManifestSegment) ([]byte, error) {
	b := make([]byte, m.Bytes)
	_, err := st.tier.blob.ReadAt(ctx, m.ID, b, 0)
	if err == nil {
		err = m.Check(b)
	}
	if err == nil || st.opts.Elsewhere == nil {
		return b, err
	}
	st.opts.Logger.Warn("the blob tier does not give a segment that it should have: copies of it are asked for", "segment", m.ID, "error", err)
	b, other := st.opts.Elsewhere(ctx, m.ID)
	if other == nil {
		other = m.Check(b)
	}
	if other != nil {
		return nil, errors.Join(err, other)
	}
	return b, nil
}

// markRemote tells recovered segments that the tier holds them.
func (st *Store) markRemote() {
	for _, m := range st.tier.man.Segments {
		if s := st.log.ByID(m.ID); s != nil {
			s.SetRemote()
		}
	}
}
