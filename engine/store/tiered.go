package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/record"
)

// tieredMeta names the segments whose files were dropped because the blob tier holds them. A start that finds neither
// would take the log for a shorter one: it must find all of them, wherever they are, or refuse.
const tieredMeta = "tiered.json"

// tieredFile is its content.
type tieredFile struct {
	Segments []record.SegmentID `json:"segments"` // sorted
}

// loadTiered reads which segments have no file.
func (st *Store) loadTiered() error {
	if st.dev == nil {
		return nil
	}
	var f tieredFile
	_, err := device.ReadJSON(st.dev, tieredMeta, &f)
	st.tier.fileless = f.Segments
	return err
}

// editTiered changes which segments have no file: before one goes, and before one that has none leaves the log.
func (st *Store) editTiered(f func([]record.SegmentID) []record.SegmentID) error {
	t := &st.tier
	t.filelessMu.Lock()
	defer t.filelessMu.Unlock()
	next := f(slices.Clone(t.fileless))
	slices.Sort(next)
	next = slices.Compact(next)
	if slices.Equal(next, t.fileless) {
		return nil
	}
	b, err := json.Marshal(tieredFile{next})
	if err != nil {
		return err
	}
	if err := st.dev.WriteMeta(tieredMeta, b); err != nil {
		return err
	}
	t.fileless = next
	return nil
}

// noteFileless says that the files of some segments are about to go.
func (st *Store) noteFileless(segs []*hlog.Segment) error {
	return st.editTiered(func(ids []record.SegmentID) []record.SegmentID {
		for _, s := range segs {
			ids = append(ids, s.ID)
		}
		return ids
	})
}

// forgetFileless says that a segment is about to leave the log.
func (st *Store) forgetFileless(id record.SegmentID) error {
	return st.editTiered(func(ids []record.SegmentID) []record.SegmentID {
		return slices.DeleteFunc(ids, func(o record.SegmentID) bool { return o == id })
	})
}

// findFileless sees that all segments without a file have one again, as recovery reads all of them: those that the tier did
// not bring back come from copies elsewhere, if there are any.
func (st *Store) findFileless(ctx context.Context) error {
	if len(st.tier.fileless) == 0 {
		return nil
	}
	local, err := st.dev.List()
	if err != nil {
		return err
	}
	for _, id := range st.tier.fileless {
		_, there := slices.BinarySearch(local, id)
		inTier := slices.ContainsFunc(st.tier.man.Segments, func(m device.ManifestSegment) bool { return m.ID == id })
		if there && !inTier && st.opts.Elsewhere != nil {
			if there, err = st.wholeFile(id); err != nil {
				return err
			}
		}
		if there {
			continue
		}
		if st.opts.Elsewhere == nil {
			return fmt.Errorf("segment %d is in the blob tier that this data directory was used with, and nowhere else: set the blob URL to that", id)
		}
		b, err := st.opts.Elsewhere(ctx, id)
		if err == nil {
			_, err = record.ScanWith(b, id, record.ScanOptions{Closed: true})
		}
		if err == nil {
			err = st.writeFile(id, b)
		}
		if err != nil {
			return fmt.Errorf("segment %d is not where it was uploaded to, and no copy of it was found: look whether the blob URL is the one that was used before: %w", id, err)
		}
	}
	return st.editTiered(func([]record.SegmentID) []record.SegmentID { return nil })
}

// wholeFile tells whether the file of a closed segment is whole, and removes it otherwise: a process died while it brought it
// back.
func (st *Store) wholeFile(id record.SegmentID) (bool, error) {
	f, err := st.dev.Open(id)
	if err != nil {
		return false, err
	}
	b := make([]byte, f.Size())
	_, err = f.ReadAt(b, 0)
	if err = errors.Join(err, f.Close()); err != nil {
		return false, err
	}
	if _, err := record.ScanWith(b, id, record.ScanOptions{Closed: true}); err == nil {
		return true, nil
	}
	return false, st.dev.Remove(id)
}
