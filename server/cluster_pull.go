package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/replica"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/background"
)

// pullMissing brings back what this machine has lost of the node's log and backups have: after a
// loss of power, what was not synced yet and was acknowledged because others had it; all of it, if its directory is
// gone. It waits until so many backups have answered that none of it can be missing.
func (l *life) pullMissing(ctx context.Context) error {
	if len(l.cache.Snapshot().Logs[l.id.Log].Backups) == 0 {
		return nil // Nobody else has any of it.
	}
	found, err := l.surveySelf(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(l.id.logPath(), 0o755); err != nil {
		return err
	}
	disk, err := device.OpenDisk(l.id.logPath())
	if err != nil {
		return err
	}
	release, err := disk.Lock()
	if err != nil {
		return err
	}
	defer release()
	if err := hlog.Restored(disk, highest(found.Roster), found.Safe); err != nil {
		return err
	}
	pulled := 0
	for _, info := range found.Segments() {
		did, err := l.pull(ctx, disk, found, info)
		if err != nil {
			return fmt.Errorf("bring back segment %d of this node's log: %w", info.Segment, err)
		}
		if did {
			pulled++
		}
	}
	if pulled > 0 {
		l.log.Warn("this machine had lost a part of the node's log: it was brought back from backups", "segments", pulled)
	}
	return nil
}

// highest is the highest id of a log's segments.
func highest(r replica.Roster) (id record.SegmentID) {
	for n := range r.Segments.All() {
		id = max(id, record.SegmentID(n))
	}
	return id
}

// surveySelf asks about this node's own log until enough have answered.
func (l *life) surveySelf(ctx context.Context) (*replica.Findings, error) {
	told := false
	for {
		s := l.cache.Snapshot()
		found := l.survey(ctx, l.id.Log, others(s, l.id.Node, l.id.Log), false, surveyWithin)
		waitFor, ok := enough(s, l.id.Log, s.Heard(found.Answered))
		if ok {
			return found, nil
		}
		if ctx.Err() != nil {
			return nil, l.why(ctx.Err())
		}
		if !told {
			told = true
			l.log.Warn("the machine was restarted, or has lost the log: the node waits until enough backups say what they have of its log", "waitsFor", fmt.Sprint(waitFor))
		}
		background.Pause(ctx, surveyWithin/10)
	}
}

// enough tells whether so many backups have answered that a node which goes on with its own
// log misses nothing, and if not, whom to wait for. When all have, that is so however few copies there are: a node
// that was alone has none, and may have begun to make some when another came.
func enough(s *meta.Snapshot, log record.LogID, answered func(view.NodeID) bool) (waitFor []view.NodeID, ok bool) {
	waitFor, ok = s.Recoverable(log, answered)
	self := s.Logs[log].Node
	waitFor = slices.DeleteFunc(waitFor, func(n view.NodeID) bool { return n == self })
	return waitFor, ok || len(waitFor) == 0
}

// others are all but this node that may have copies of its log.
func others(s *meta.Snapshot, self view.NodeID, log record.LogID) (nodes []view.NodeID) {
	seen := map[view.NodeID]bool{self: true}
	for _, n := range append(s.Living(), s.Logs[log].Backups...) {
		if !seen[n] {
			seen[n] = true
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// pull makes a segment as long as the copy that reaches farthest, if it is not.
func (l *life) pull(ctx context.Context, disk device.Device, found *replica.Findings, info replica.ReplicaInfo) (bool, error) {
	size := l.settings.SegmentBytes
	f, err := disk.Open(info.Segment)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f, err = disk.Create(info.Segment, size)
	case err == nil:
		bytes := make([]byte, f.Size())
		if _, err := f.ReadAt(bytes, 0); err != nil {
			return false, errors.Join(err, f.Close())
		}
		if ext, _ := record.Scan(bytes, info.Segment); ext.Closed || ext.End >= int(info.End) {
			return false, f.Close()
		}
		if f.Size() < int64(size) { // It was cut, and yet is not whole: begin anew.
			if err := errors.Join(f.Close(), disk.Remove(info.Segment)); err != nil {
				return false, err
			}
			f, err = disk.Create(info.Segment, size)
		}
	}
	if err != nil {
		return false, err
	}
	bytes, _, err := found.Whole(ctx, info.Segment)
	if err == nil {
		_, err = f.WriteAt(append(bytes, make([]byte, size-len(bytes))...), 0)
	}
	return true, errors.Join(err, f.Sync(), f.Close())
}
