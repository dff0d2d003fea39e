package replica

import (
	"context"
	"errors"
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
		return SurveyAnswer{}, nil, nil
	}
	l.mu.Lock()
	var err error
	if q.Fence {
		err = l.retire()
	}
	if l.closed {
		err = errClosing
	}
	if err != nil {
		l.mu.Unlock()
		return nil, nil, err
	}
	a := SurveyAnswer{Retired: l.saved.Retired, Roster: l.saved.Roster}
	var list []*replica
	for _, r := range l.replicas {
		list = append(list, r)
	}
	l.mu.Unlock()
	slices.SortFunc(list, func(a, b *replica) int {
		if a.segment < b.segment {
			return -1
		}
		return 1
	})
	var bulk, memory []byte
	for _, r := range list {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		var info ReplicaInfo
		var runs Runs
		var known bool
		info, runs, memory, known = r.look(q.Batches, a.Roster.Safe, memory)
		if !known {
			continue
		}
		before := len(bulk)
		bulk = runs.AppendTo(bulk)
		info.RunBytes = uint32(len(bulk) - before)
		a.Replicas = append(a.Replicas, info)
	}
	return a, bulk, nil
}

// look finds out what a replica has. Closed ones are read only for their batches
// beyond the safe one. known is false for one that was dropped meanwhile.
func (r *replica) look(batches bool, safe record.BatchID, memory []byte) (info ReplicaInfo, runs Runs, kept []byte, known bool) {
	r.log.mu.Lock()
	info = r.info()
	lost := r.lost
	r.log.mu.Unlock()
	if lost {
		return info, nil, memory, false
	}
	if info.Corrupt || info.State == StateClosed && (!batches || info.Batch <= safe) {
		return info, nil, memory, true
	}
	h, err := r.hold(memory)
	defer h.release()
	switch {
	case errors.Is(err, ErrNotFound):
		return info, nil, memory, false
	case err != nil:
		r.markCorrupt(err)
		info.Corrupt = true
		return info, nil, memory, true
	}
	if !h.pinned {
		memory = h.bytes
	}
	info = h.info
	var only func(record.BatchID) bool
	if batches {
		only = func(n record.BatchID) bool {
			if n > safe {
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
	return info, runs, memory, true
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
