package replica

import (
	"cmp"
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"github.com/ostrodb/ostro/cluster/view"
)

// Placement says how a primary chooses backups for a segment.
type Placement struct {
	// ScatterWidth, if positive, bounds how many other nodes hold copies of this
	// node's segments (copysets): fewer combinations of nodes can lose data
	// together, and fewer nodes take part in a recovery. 0 spreads over all.
	ScatterWidth int
	// Seed makes the choice repeatable in tests; 0 takes a random one.
	Seed uint64
}

// placer chooses backups: never this node, in zones of their own as far as there
// are enough, otherwise at random.
type placer struct {
	self   view.NodeID
	copies int // per segment, without the primary's
	width  int
	random *rand.Rand
}

func newPlacer(self view.NodeID, copies int, p Placement) *placer {
	seed := p.Seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	return &placer{self: self, copies: copies, width: p.ScatterWidth, random: rand.New(rand.NewPCG(seed, 0))}
}

// choose orders those of living that may take a replica, best first. have are
// nodes that hold the segment already; no zone of theirs is used again if another
// can be.
func (p *placer) choose(living []Member, have []view.NodeID) []Member {
	zones := map[string]int{}
	var free []Member
	for _, m := range living {
		if m.ID == p.self || slices.Contains(have, m.ID) {
			zones[m.Zone]++
			continue
		}
		free = append(free, m)
	}
	p.random.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
	if p.width == 0 {
		return spread(free, zones, len(free))
	}
	// Sets are made of different zones. Who chose by zones first would leave them at once.
	set := p.copyset(living, have)
	slices.SortStableFunc(free, func(a, b Member) int { return rank(set, a.ID) - rank(set, b.ID) })
	inside := 0
	for inside < len(free) && rank(set, free[inside].ID) == 0 {
		inside++
	}
	return append(spread(free[:inside], zones, inside), spread(free[inside:], zones, len(free)-inside)...)
}

func rank(set []view.NodeID, n view.NodeID) int {
	if slices.Contains(set, n) {
		return 0
	}
	return 1
}

// spread takes, n times, the first whose zone is used least.
func spread(free []Member, zones map[string]int, n int) []Member {
	free = slices.Clone(free)
	ordered := make([]Member, 0, n)
	for range n {
		best := 0
		for i, m := range free {
			if zones[m.Zone] < zones[free[best].Zone] {
				best = i
			}
		}
		m := free[best]
		zones[m.Zone]++
		ordered = append(ordered, m)
		free = slices.Delete(free, best, best+1)
	}
	return ordered
}

// copyset chooses one of the sets that this node is in, one that agrees with
// most of have.
func (p *placer) copyset(living []Member, have []view.NodeID) []view.NodeID {
	sets := copysets(living, p.copies+1, p.width)
	var mine [][]view.NodeID
	best := -1
	for _, s := range sets {
		if !slices.Contains(s, p.self) {
			continue
		}
		common := 0
		for _, n := range have {
			if slices.Contains(s, n) {
				common++
			}
		}
		if common > best {
			mine, best = nil, common
		}
		if common == best {
			mine = append(mine, s)
		}
	}
	if len(mine) == 0 {
		return nil
	}
	return mine[p.random.IntN(len(mine))]
}

// copysets cuts permutations of the nodes into sets of size nodes, in zones of their own as far as
// there are enough. All nodes that see the same members make the same sets: the permutations
// come from the nodes' names.
func copysets(living []Member, size, width int) [][]view.NodeID {
	if size < 2 || len(living) < size {
		return nil
	}
	var sets [][]view.NodeID
	for round := range max(1, (width+size-2)/(size-1)) {
		turn := slices.Clone(living)
		slices.SortFunc(turn, func(a, b Member) int {
			return cmp.Or(cmp.Compare(lot(a.ID, round), lot(b.ID, round)), cmp.Compare(a.ID, b.ID))
		})
		for alone := len(turn); alone > 0; {
			var set []view.NodeID
			// Those who are in a set already come last; they join where nobody else is left, or of that zone.
			for _, m := range spread(turn, map[string]int{}, size) {
				set = append(set, m.ID)
				i := slices.Index(turn, m)
				turn = append(slices.Delete(turn, i, i+1), m)
				if i < alone {
					alone--
				}
			}
			sets = append(sets, set)
		}
	}
	return sets
}

// lot is a node's place in a permutation.
func lot(n view.NodeID, round int) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte{byte(round), byte(round >> 8)})
	_, _ = h.Write([]byte(n))
	sum := h.Sum64() * 0x9e3779b97f4a7c15 // Names that differ at their ends only must differ at the top.
	return sum ^ sum>>29
}
