package replica

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/cluster/view"
)

func nodes(n, zones int) []Member {
	var all []Member
	for i := range n {
		all = append(all, Member{ID: view.NodeID(fmt.Sprintf("n%d", i)), Zone: fmt.Sprint("zone ", i%zones)})
	}
	return all
}

func TestNoNodeIsABackupOfItselfAndNoneIsChosenTwice(t *testing.T) {
	random := seeded(t)
	living := nodes(7, 3)
	p := newPlacer("n0", 2, Placement{Seed: random.Uint64()})
	seen := map[view.NodeID]int{}
	for range 1000 {
		chosen := p.choose(living, []view.NodeID{"n3"})
		if len(chosen) != 5 {
			t.Fatalf("chose %v", chosen)
		}
		for _, m := range chosen {
			if m.ID == "n0" || m.ID == "n3" {
				t.Fatalf("chose %s: %v", m.ID, chosen)
			}
		}
		seen[chosen[0].ID]++
	}
	// n1, n2, n4 and n5 are in zones of their own beside zone 0; of n6's zone is n0.
	for _, n := range []view.NodeID{"n2", "n5"} {
		if seen[n] == 0 {
			t.Errorf("%s was never the first: %v", n, seen)
		}
	}
}

func TestCopiesAreSpreadOverZonesWhileThereAreEnough(t *testing.T) {
	random := seeded(t)
	for _, zones := range []int{1, 2, 3, 4} {
		living := nodes(8, zones)
		p := newPlacer("n0", 2, Placement{Seed: random.Uint64()})
		for range 200 {
			used := map[string]bool{"zone 0": true}
			for _, m := range p.choose(living, nil)[:2] {
				used[m.Zone] = true
			}
			if want := min(zones, 3); len(used) != want {
				t.Fatalf("%d zones: %d used, want %d", zones, len(used), want)
			}
		}
	}
}

func TestCopysetsBoundTheCombinationsOfNodesThatCanLoseData(t *testing.T) {
	random := seeded(t)
	living := nodes(30, 1)
	const width = 4
	combinations := func(p Placement) int {
		seen := map[string]bool{}
		for _, self := range living {
			placer := newPlacer(self.ID, 2, p)
			for range 100 {
				chosen := placer.choose(living, nil)[:2]
				set := []string{string(self.ID), string(chosen[0].ID), string(chosen[1].ID)}
				slices.Sort(set)
				seen[strings.Join(set, " ")] = true
			}
		}
		return len(seen)
	}
	spread, sets := combinations(Placement{Seed: random.Uint64()}), combinations(Placement{Seed: random.Uint64(), ScatterWidth: width})
	if most := width / 2 * len(living) / 3; sets > most {
		t.Errorf("%d combinations of nodes, want at most %d", sets, most)
	}
	if spread < 500 {
		t.Errorf("without copysets only %d combinations: the test compares nothing", spread)
	}
}

func TestASecondCopyJoinsTheCopysetOfTheFirst(t *testing.T) {
	living := nodes(30, 1)
	p := newPlacer("n0", 2, Placement{ScatterWidth: 6, Seed: 1})
	for range 50 {
		pair := p.choose(living, nil)[:2]
		again := p.choose(living, []view.NodeID{pair[0].ID})
		sets := copysets(living, 3, 6)
		if !slices.ContainsFunc(sets, func(s []view.NodeID) bool {
			return slices.Contains(s, "n0") && slices.Contains(s, pair[0].ID) && slices.Contains(s, again[0].ID)
		}) {
			t.Fatalf("n0, %s and %s are in no set together", pair[0].ID, again[0].ID)
		}
	}
}

func TestCopysetsBoundTheCombinationsInZonesToo(t *testing.T) {
	random := seeded(t)
	living := nodes(30, 3)
	const width = 4
	seen := map[string]bool{}
	for _, self := range living {
		placer := newPlacer(self.ID, 2, Placement{Seed: random.Uint64(), ScatterWidth: width})
		for range 100 {
			chosen := placer.choose(living, nil)[:2]
			set := []string{string(self.ID), string(chosen[0].ID), string(chosen[1].ID)}
			slices.Sort(set)
			seen[strings.Join(set, " ")] = true
			if chosen[0].Zone == chosen[1].Zone || chosen[0].Zone == self.Zone || chosen[1].Zone == self.Zone {
				t.Fatalf("%s has its copies at %v", self, chosen)
			}
		}
	}
	if most := width / 2 * len(living) / 3; len(seen) > most {
		t.Errorf("%d combinations of nodes, want at most %d", len(seen), most)
	}
}

func TestCopysetsUseAllZonesThoughOneHasMostNodes(t *testing.T) {
	living := nodes(6, 1)
	living[4].Zone, living[5].Zone = "zone 1", "zone 2"
	for _, self := range living {
		placer := newPlacer(self.ID, 2, Placement{Seed: 1, ScatterWidth: 2})
		used := map[string]bool{self.Zone: true}
		for _, m := range placer.choose(living, nil)[:2] {
			used[m.Zone] = true
		}
		if len(used) != 3 {
			t.Errorf("copies of %s are in %d zones, want 3", self.ID, len(used))
		}
	}
	sets := copysets(living, 3, 2)
	for _, m := range living {
		if !slices.ContainsFunc(sets, func(s []view.NodeID) bool { return slices.Contains(s, m.ID) }) {
			t.Errorf("%s is in no set: %v", m.ID, sets)
		}
	}
}
