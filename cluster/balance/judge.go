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
	near    bool        // in one of them it carries less than far
	anew    int         // how often samples were dropped for those that came after
}

const (
	// far is how many times the average a node must carry for half of the samples to be enough.
	far = 2
	// apart is how much of the load must have gone to other nodes for a sample to be of another load than those before.
	apart = 0.2
	// anews is how often all begins again for that: what changes for ever is judged by its mean.
	anews = 2
)

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
	if j.count > 0 && j.anew < anews && distance(j.seen, loads) > apart {
		// Records were being loaded until now, say: a plan for both would suit neither.
		j.seen, j.count, j.near = nil, 0, false
		j.anew++
	}
	j.note(loads)
	j.near = j.near || now.Ratio < far || now.still
	if j.count < j.needed() {
		return now.held(HeldSamples, fmt.Sprintf("%s carries %.2f times the average, in %d of %d samples that it takes", now.Fullest, now.Ratio, j.count, j.needed()))
	}
	plan := Make(m, j.means(), j.policy, spent)
	j.forget()
	if len(plan.Moves) > 0 {
		j.cool = j.policy.Cool
	}
	return plan
}

// needed is how many samples it takes: the more uneven they are, the less can be chance.
func (j *Judge) needed() int {
	if j.near || j.misses > 0 {
		return j.policy.Samples
	}
	return min(j.policy.Samples, max(3, (j.policy.Samples+1)/2))
}

// distance is how much of the load, 0 to 1, is at other nodes in b than in a. How much there is in all does not matter.
func distance(a, b []Load) (d float64) {
	if !sameNodes(a, b) {
		return 1
	}
	allA, allB := 0.0, 0.0
	for i := range a {
		allA, allB = allA+a[i].Sum(), allB+b[i].Sum()
	}
	if allA == 0 || allB == 0 {
		return 0
	}
	for i := range a {
		d += max(0, b[i].Sum()/allB-a[i].Sum()/allA)
	}
	return d
}

// held is a plan whose moves wait. If there are none it waits for nothing.
func (p Plan) held(by Held, why string) Plan {
	if len(p.Moves) == 0 {
		by = ""
	}
	return Plan{Fullest: p.Fullest, Ratio: p.Ratio, Expected: p.Ratio, Held: by, Why: why}
}

func (j *Judge) forget() {
	*j = Judge{policy: j.policy, cool: j.cool}
}

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
