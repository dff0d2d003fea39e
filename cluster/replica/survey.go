package replica

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/engine/record"
)

func (b *Backup) onSurvey(ctx context.Context, c *peer.Call) (any, []byte, error) {
	var q SurveyRequest
	if err := c.Bind(&q); err != nil {
		return nil, nil, err
	}
	b.count.surveys.Add(1)
	// A fence makes the log known even here where it never was: it may be on its way.
	l := b.log(q.Log, q.Fence)
	if l == nil {
		return SurveyAnswer{Directory: &b.id}, nil, nil
	}
	a, list, err := l.list(q.Fence)
	if err != nil {
		return nil, nil, err
	}
	a.Directory = &b.id
	v := viewer{batches: q.Batches, safe: a.Roster.Safe}
	for _, r := range list {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		info, runs, known := v.look(r)
		if !known { // Perhaps it was put anew meanwhile.
			if r, err = b.replicaOf(q.Log, r.segment); err == nil {
				info, runs, known = v.look(r)
			}
		}
		if known {
			before := len(v.bulk)
			v.bulk = runs.AppendTo(v.bulk)
			info.RunBytes = uint32(len(v.bulk) - before)
			a.Replicas = append(a.Replicas, info)
		}
	}
	return a, v.bulk, nil
}

// list is what is known of a log without a look at its replicas, which are in the
// order of their segments.
func (l *copies) list(fence bool) (a SurveyAnswer, list []*replica, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return a, nil, errClosing
	}
	if fence {
		if err := l.retire(); err != nil {
			return a, nil, err
		}
	}
	list = slices.Collect(maps.Values(l.replicas))
	slices.SortFunc(list, func(a, b *replica) int { return cmp.Compare(a.segment, b.segment) })
	return SurveyAnswer{Retired: l.saved.Retired, Roster: l.saved.Roster}, list, nil
}

// viewer looks at replicas for a survey.
type viewer struct {
	batches bool // list those beyond safe
	safe    record.BatchID
	bulk    []byte
	memory  []byte // for copies of what is being written
}

// look finds out what a replica has. Closed ones are read only for their batches
// beyond the safe one. known is false for one that was dropped.
func (v *viewer) look(r *replica) (info ReplicaInfo, runs Runs, known bool) {
	if info, known = r.glance(); !known {
		return info, nil, false
	}
	if info.Corrupt || info.State == StateClosed && (!v.batches || info.Batch <= v.safe) {
		return info, nil, true
	}
	h, err := r.hold(v.memory)
	defer h.release()
	if err != nil {
		r.markCorrupt(err)
		info, known = r.glance()
		info.Corrupt = true // For now, at least.
		return info, nil, known
	}
	if !h.pinned {
		v.memory = h.bytes
	}
	info = h.info
	var only func(record.BatchID) bool
	if v.batches {
		only = func(n record.BatchID) bool {
			if n <= v.safe {
				runs = runs[:0] // Of these the last will do.
			}
			if n > 0 { // Side segments have no other.
				runs = runs.with(uint64(n))
			}
			return true
		}
	}
	ext, err := h.scan(only)
	if err != nil {
		r.markCorrupt(err)
		info.Corrupt = true
	}
	info.End, info.Batch, info.Sealed, info.TornBytes = uint32(ext.End), ext.Batch, ext.Closed, uint32(ext.LostBytes)
	return info, runs, true
}

// glance is what is known of a replica; false if it was dropped.
func (r *replica) glance() (ReplicaInfo, bool) {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	return r.info(), !r.lost
}

func (b *Backup) onHealth(_ context.Context, c *peer.Call) (any, []byte, error) {
	var q HealthRequest
	if err := c.Bind(&q); err != nil {
		return nil, nil, err
	}
	var a HealthAnswer
	a.Free, _ = b.pool.counts()
	a.Full = a.Free == 0
	l := b.log(q.Log, false)
	if l == nil {
		return a, nil, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a.Replicas = len(l.replicas)
	for id, r := range l.replicas {
		if r.state != StateClosed {
			a.Open++
		}
		if r.corrupt {
			a.Corrupt = append(a.Corrupt, id)
		}
	}
	slices.Sort(a.Corrupt)
	return a, nil, nil
}
