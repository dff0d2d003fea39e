package server

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/background"
)

// In a cluster the blob tier holds copies of segments beside those that backups have, never in their stead: what is
// acknowledged is in the replicas, recoveries read nothing else, and the tier may lose everything. Each log has a prefix of
// its own, which only its node writes to, and a log has one node. So one that was deposed and does not know it can
// neither overwrite nor delete what counts: its log does not any more.

// openTier opens the shared tier, so that what is wrong with its address shows before the node joins.
func (h *host) openTier() (err error) {
	if h.cfg.BlobURL == "" {
		return nil
	}
	h.tier, err = device.OpenBucket(h.ctx, h.cfg.BlobURL, h.log.With("part", "tier"))
	return err
}

// copyOf gets a segment of this node's log from one of its backups.
func (l *life) copyOf(ctx context.Context, id record.SegmentID) ([]byte, error) {
	found := l.survey(ctx, l.id.Log, others(l.cache.Snapshot(), l.id.Node, l.id.Log), false, surveyWithin)
	b, _, err := found.Whole(ctx, id)
	return b, err
}

// sweepEvery is how often the coordinator looks for logs that are over, and sweepAgain after which time it looks at the
// same one again: its node may not have known for a while.
const (
	sweepEvery = time.Second
	sweepAgain = time.Hour
)

// sweepTier removes what the shared tier has of logs that others have taken over, while this node is the coordinator.
func (l *life) sweepTier(ctx context.Context) {
	if l.tier == nil {
		return
	}
	swept := map[record.LogID]time.Time{}
	for ctx.Err() == nil {
		s := l.cache.Snapshot()
		if s.Coordinator == l.self {
			l.sweepLogs(ctx, s, swept)
		}
		background.Pause(ctx, sweepEvery)
	}
}

// sweepLogs removes the logs that are over and were not looked at of late.
func (l *life) sweepLogs(ctx context.Context, s *meta.Snapshot, swept map[record.LogID]time.Time) {
	for _, log := range retired(s) {
		if last, done := swept[log]; done && time.Since(last) < sweepAgain {
			continue
		}
		n, err := l.tier.RemoveLog(ctx, log)
		if err != nil {
			if ctx.Err() == nil {
				l.log.Warn("the shared tier keeps a log that is over; it is tried again", "log", fmt.Sprintf("%016x", uint64(log)), "why", err)
			}
			background.Pause(ctx, 10*sweepEvery)
			return
		}
		swept[log] = time.Now()
		if n > 0 {
			l.log.Info("a log that is over was removed from the shared tier", "log", fmt.Sprintf("%016x", uint64(log)), "objects", n)
		}
	}
}

// retired lists the logs that nobody needs any more: others have taken them over, and have all of them. What etcd does not
// know may be another cluster's.
func retired(s *meta.Snapshot) (logs []record.LogID) {
	for id, log := range s.Logs {
		if _, needed := s.Recoveries[id]; log.Retired && !needed {
			logs = append(logs, id)
		}
	}
	slices.Sort(logs)
	return logs
}
