package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/record"
)

// A logged store has every segment on disk; its checkpoint is a snapshot of the
// index, which spares recovery most of the replay. A volatile one makes a fold-over checkpoint: heads go
// on in new segments, all others become read-only where they are, are written
// to their files, and a manifest names them. Nothing stops meanwhile, and no
// memory is doubled: a record that is updated during the checkpoint moves to a
// new segment, as it would when it is spilled.

// ManifestMeta is the metadata that names the segments of a checkpoint.
const ManifestMeta = "checkpoint.json"

// Manifest is its content.
type Manifest struct {
	Millis   int64              `json:"millis"`
	Segments []record.SegmentID `json:"segments"`
}

// ReadManifest reads the manifest of a volatile store: the next start removes
// all segments that it does not name. Without one, which is false, all count.
func ReadManifest(r device.MetaReader) (m Manifest, found bool, err error) {
	found, err = device.ReadJSON(r, ManifestMeta, &m)
	return m, found, err
}

// Checkpoint makes everything written before it durable. It ends without that when the store closes.
func (st *Store) Checkpoint(ctx context.Context) error {
	if st.dev == nil {
		return errors.New("a store without a data directory cannot be saved: set one")
	}
	if !st.admit() {
		return ErrClosed
	}
	defer st.workers.Done()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(st.ctx, stop)()
	st.saving.Lock()
	defer st.saving.Unlock()
	var err error
	if st.opts.logged() {
		err = st.writeSnapshot(ctx)
	} else {
		err = st.foldOver(ctx)
	}
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	st.lastCheckpoint.Store(time.Now().UnixMilli())
	st.work.checkpoints.Add(1)
	return nil
}

func (st *Store) foldOver(ctx context.Context) error {
	segs, ids := st.pinClosed()
	defer st.pin(nil)
	for _, s := range segs {
		if err := st.cool(s); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return st.writeManifest(ids)
}

// pinClosed closes what is open, and fixes what the checkpoint is made of: from
// here on the cleaner may relocate records of these segments, but it leaves
// their files. None of them is half cleaned at that moment: what it had
// relocated would be in the checkpoint, what it had still to relocate would not.
func (st *Store) pinClosed() (segs []*hlog.Segment, ids []record.SegmentID) {
	st.cleaning.Lock()
	defer st.cleaning.Unlock()
	segs = st.log.Cut()
	for _, s := range segs {
		ids = append(ids, s.ID)
	}
	st.pin(ids)
	return segs, ids
}

// pin says which segments a checkpoint under way is made of, sorted.
func (st *Store) pin(ids []record.SegmentID) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.pinned = ids
}

// pins tells whether a checkpoint under way needs the segment's file.
func (st *Store) pins(id record.SegmentID) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	_, ok := slices.BinarySearch(st.pinned, id)
	return ok
}

// writeManifest makes the named segments the checkpoint, and removes the files
// that neither it nor the log needs.
func (st *Store) writeManifest(ids []record.SegmentID) error {
	b, err := json.Marshal(Manifest{time.Now().UnixMilli(), ids})
	if err != nil {
		return err
	}
	if err := st.dev.WriteMeta(ManifestMeta, b); err != nil {
		return err
	}
	st.mu.Lock()
	st.manifest = ids
	st.mu.Unlock()
	return st.removeStray()
}

// removeStray removes files of segments that are gone from log and checkpoint.
func (st *Store) removeStray() error {
	all, err := st.dev.List()
	if err != nil {
		return err
	}
	for _, id := range all {
		if st.log.ByID(id) == nil && !st.named(id) {
			if err := st.dev.Remove(id); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// named tells whether a checkpoint, the last one or one under way, needs the
// segment's file.
func (st *Store) named(id record.SegmentID) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	_, last := slices.BinarySearch(st.manifest, id)
	_, next := slices.BinarySearch(st.pinned, id)
	return last || next
}

// keepCheckpointed leaves out, and removes, what was spilled after the last
// checkpoint of a volatile store: it is no consistent part of anything.
func (st *Store) keepCheckpointed(found []hlog.Found) ([]hlog.Found, error) {
	f, there, err := ReadManifest(st.dev)
	if err != nil || !there {
		return found, err
	}
	slices.Sort(f.Segments)
	st.manifest = f.Segments
	st.lastCheckpoint.Store(f.Millis)
	kept := found[:0]
	for _, s := range found {
		if st.named(s.ID) {
			kept = append(kept, s)
			continue
		}
		s.Close()
		if err := st.dev.Remove(s.ID); err != nil {
			return nil, err
		}
	}
	if len(kept) < len(f.Segments) {
		return nil, fmt.Errorf("the checkpoint names %d segments, %d are there: restore the missing files from a copy", len(f.Segments), len(kept))
	}
	return kept, nil
}

// afterRecovery leaves the directory in the form of the durability in force: a
// logged store has no manifest, for all its segments count; a volatile one has.
func (st *Store) afterRecovery() error {
	if st.opts.logged() {
		st.manifest = nil
		if err := st.dev.RemoveMeta(ManifestMeta); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	var ids []record.SegmentID
	for _, s := range st.log.Segments() {
		ids = append(ids, s.ID)
	}
	return st.writeManifest(ids)
}

// checkpointLoop makes checkpoints by the clock.
func (st *Store) checkpointLoop(ctx context.Context) {
	if st.opts.CheckpointEvery <= 0 || st.dev == nil {
		return
	}
	every(ctx, st.opts.CheckpointEvery, nil, func() {
		if err := st.Checkpoint(ctx); err != nil && ctx.Err() == nil {
			st.opts.Logger.Error("the automatic checkpoint failed", "error", err)
		}
	})
}
