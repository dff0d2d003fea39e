package hlogtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/record"
)

// Check compares each copy with the segment that it is of, and with itself: it
// must end in the seal of its last batch.
func (c *Copies) Check() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, s := range c.segs {
		ext, err := record.Scan(s.bytes, id)
		if s.to > 0 && err != nil || uint32(ext.End) != s.to || ext.Batch != s.batch || ext.Closed != s.whole {
			c.judge.Errorf("the copy of segment %d ends in %+v (%v), want %d bytes up to batch %d, closed: %v", id, ext, err, s.to, s.batch, s.whole)
		}
		if s.memory != nil && !bytes.Equal(s.bytes[:s.to], s.memory[:s.to]) {
			c.judge.Errorf("segment %d is not what was copied of it", id)
		}
	}
}

// Lost gives what is left of a log when its node is gone, as a device: what was
// copied by now, in whatever state, and the named metadata of d. Recovery has to
// leave out what lacks batches before it.
func (c *Copies) Lost(d *device.Memory, metas ...string) (*device.Memory, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := device.NewMemory()
	var next record.SegmentID
	for id := range c.used {
		next = max(next, id+1)
	}
	for id, s := range c.segs {
		if err := c.leave(left, id, s); err != nil {
			return left, err
		}
	}
	for _, name := range metas {
		b, err := d.ReadMeta(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = left.WriteMeta(name, b)
		}
		if err != nil {
			return left, err
		}
	}
	return left, errors.Join(
		writeJSON(left, hlog.SyncedMeta, map[string]any{"batch": c.safe}),
		writeJSON(left, hlog.SegmentsMeta, map[string]any{"next": next}))
}

func writeJSON(d *device.Memory, name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return d.WriteMeta(name, b)
}

// leave writes a copy to a file. It is cut, which says that no batch before its
// last is missing, only if that is so.
func (c *Copies) leave(d *device.Memory, id record.SegmentID, s *copied) error {
	f, err := d.Create(id, c.src.SegmentBytes)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteAt(s.bytes[:s.to], 0); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if s.whole && s.batch <= c.Watermark() {
		return f.Cut(int64(s.to))
	}
	return nil
}
