package balance

import (
	"fmt"

	"github.com/ostrodb/ostro/cluster/view"
)

// Judge looks at sample after sample and plans when it has seen enough. It is for one goroutine.
type Judge struct {
	policy Policy
	seen   []Load // sums of the samples that count, one a node
	count  int
}

// NewJudge returns one that has seen nothing.
func NewJudge(p Policy) *Judge { return &Judge{policy: p.WithDefaults()} }

// Sample takes what all living nodes carried since the last one, and returns what
// should move, usually nothing. moving says that ranges are on their way: what is measured
// then is not what will be.
func (j *Judge) Sample(m view.Map, loads []Load, moving bool) Plan {
	if moving {
		j.forget()
		return Plan{Why: "ranges are on their way: loads are compared again when they have arrived"}
	}
	now := Make(m, loads, j.policy)
	if len(now.Moves) == 0 {
		j.forget()
		return now
	}
	j.note(loads)
	if j.count < j.policy.Samples {
		return Plan{
			Fullest: now.Fullest, Ratio: now.Ratio, Expected: now.Ratio,
			Why: fmt.Sprintf("%s carries %.2f times the average, in %d of %d samples that it takes", now.Fullest, now.Ratio, j.count, j.policy.Samples),
		}
	}
	plan := Make(m, j.means(), j.policy)
	j.forget()
	return plan
}

func (j *Judge) forget() { j.seen, j.count = nil, 0 }

// note adds a sample. If nodes have come or gone, it begins anew.
func (j *Judge) note(loads []Load) {
	if !sameNodes(j.seen, loads) {
		j.seen, j.count = cloned(loads), 1
		return
	}
	j.count++
	for i, load := range loads {
		at := &j.seen[i]
		at.Bytes += load.Bytes
		at.Full = load.Full
		if len(at.Ops) < len(load.Ops) {
			at.Ops = append(at.Ops, make([]float64, len(load.Ops)-len(at.Ops))...)
		}
		for slot, ops := range load.Ops {
			at.Ops[slot] += ops
		}
	}
}

func sameNodes(a, b []Load) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Node != b[i].Node {
			return false
		}
	}
	return true
}

// means are the samples' means.
func (j *Judge) means() []Load {
	all := cloned(j.seen)
	for i := range all {
		all[i].Bytes /= float64(j.count)
		for slot := range all[i].Ops {
			all[i].Ops[slot] /= float64(j.count)
		}
	}
	return all
}

// cloned are loads whose slices can be changed.
func cloned(loads []Load) []Load {
	all := append([]Load(nil), loads...)
	for i := range all {
		all[i].Ops = append([]float64(nil), all[i].Ops...)
	}
	return all
}
