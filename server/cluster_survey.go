package server

import (
	"context"
	"time"

	"github.com/ostrodb/ostro/cluster/coordinator"
	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/replica"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// How long nodes get to answer a survey. A fence takes longer: it waits for what is under
// way, and reads what was written last.
const (
	surveyWithin = 3 * time.Second
	fenceWithin  = 6 * time.Second
)

// surveyor asks nodes for the coordinator.
type surveyor struct{ *host }

// Survey asks all of nodes and returns when each has answered or did not in time.
func (s surveyor) Survey(ctx context.Context, log record.LogID, nodes []view.NodeID, fence bool) coordinator.Findings {
	within := surveyWithin
	if fence {
		within = fenceWithin
	}
	return findings{s.survey(ctx, log, nodes, fence, within)}
}

// survey asks nodes what they have of a log; that nobody has anything is an answer, too.
func (h *host) survey(ctx context.Context, log record.LogID, nodes []view.NodeID, fence bool, within time.Duration) *replica.Findings {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	found, err := replica.Survey(ctx, h.pool, nodes, log, fence)
	if err != nil {
		h.log.Debug("nobody answered a survey", "why", err)
	}
	for n, err := range found.Failed {
		h.log.Debug("a node did not answer a survey", "node", n, "why", err)
	}
	found.Version, found.Report = h.cache.Snapshot().Logs[log].ReplicaVersion, h.log
	return found
}

// findings are a survey's as the coordinator wants them.
type findings struct{ *replica.Findings }

func (f findings) Lacking() []record.SegmentID { return f.Missing() }

func (f findings) Plan() (meta.Plan, error) {
	return meta.Plan{Cut: f.CutWithout(), Roster: f.Roster.Number}, nil
}
