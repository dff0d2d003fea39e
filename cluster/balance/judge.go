package balance

import (
	"fmt"
	"slices"

	"github.com/ostrodb/ostro/cluster/view"
)

// Judge looks at sample after sample and plans when it has seen enough. It is for one goroutine.
type Judge struct {
	policy Policy
	seen   []Load // sums of the samples that count, one a node
	count  int
	cool   int // how many samples do not count

	fullest view.NodeID // in all of the samples
	misses  int         // but for so many
}

// NewJudge returns one that has seen nothing.
func NewJudge(p Policy) *Judge { return &Judge{policy: p.WithDefaults()} }

// Sample takes what all living nodes carried since the last one, and returns what
// should move, usually nothing. moving says that ranges are on their way: what is measured
// then is not what will be. spent is what was moved within the last hour.
func (j *Judge) Sample(m view.Map, loads []Load, moving bool, spent Spent) Plan {
	now := Make(m, loads, j.policy, spent)
	if moving {
		j.forget()
		j.cool = j.policy.Cool
		return now.held(HeldMoving, "ranges are on their way: loads are compared again when they have arrived")
	}
	if j.cool > 0 {
		j.cool--
		return now.held(HeldCool, fmt.Sprintf("something has just moved: the next %d samples do not count", j.cool+1))
	}
	if len(now.Moves) == 0 || now.Fullest != j.fullest {
		// Another node, as when records are loaded into one after the other; or chance.
		if j.misses++; j.count == 0 || j.misses > j.policy.misses() {
			j.forget()
			if len(now.Moves) == 0 {
				return now
			}
			j.fullest = now.Fullest
		}
	}
	j.note(loads)
	if j.count < j.policy.Samples {
		return now.held(HeldSamples, fmt.Sprintf("%s carries %.2f times the average, in %d of %d samples that it takes", now.Fullest, now.Ratio, j.count, j.policy.Samples))
	}
	plan := Make(m, j.means(), j.policy, spent)
	j.forget()
	if len(plan.Moves) > 0 {
		j.cool = j.policy.Cool
	}
	return plan
}

// held is a plan whose moves wait. If there are none it waits for nothing.
func (p Plan) held(by Held, why string) Plan {
	if len(p.Moves) == 0 {
		by = ""
	}
	return Plan{Fullest: p.Fullest, Ratio: p.Ratio, Expected: p.Ratio, Held: by, Why: why}
}

func (j *Judge) forget() { j.seen, j.count, j.misses, j.fullest = nil, 0, 0, "" }

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
		at.Full, at.Hot, at.Links = load.Full, load.Hot, load.Links
		at.Settling = at.Settling || load.Settling // Its bytes are of all samples.
		at.Ops, at.Sizes = plus(at.Ops, load.Ops), plus(at.Sizes, load.Sizes)
	}
}

// plus adds more to sums, which may become longer.
func plus(sums, more []float64) []float64 {
	if len(sums) < len(more) {
		sums = append(sums, make([]float64, len(more)-len(sums))...)
	}
	for slot, v := range more {
		sums[slot] += v
	}
	return sums
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
		all[i].Ops, all[i].Sizes = slices.Clone(all[i].Ops), slices.Clone(all[i].Sizes)
	}
	return all
}
