package workload

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Op is what a worker does with the record it drew.
type Op uint8

const (
	Read   Op = iota // get the value
	Update           // overwrite the value
	Insert           // put a record that was not there
	Modify           // read the value, then write it changed
	Add              // add one to a counter
)

// Mix is the share of each Op in percent; the shares sum to 100.
type Mix struct {
	Name  string
	About string

	Read, Update, Insert, Modify, Add int

	// Latest draws mostly what was inserted last, whatever the
	// distribution asked for; YCSB D is the only such mix.
	Latest bool
}

// The mixes are YCSB's core workloads, plus two that stores are measured by:
// plain writes, and the counter that FASTER's own benchmark calls RMW.
var (
	YCSBA   = Mix{Name: "ycsb-a", About: "50% read, 50% update", Read: 50, Update: 50}
	YCSBB   = Mix{Name: "ycsb-b", About: "95% read, 5% update", Read: 95, Update: 5}
	YCSBC   = Mix{Name: "ycsb-c", About: "100% read", Read: 100}
	YCSBD   = Mix{Name: "ycsb-d", About: "95% read of the latest, 5% insert", Read: 95, Insert: 5, Latest: true}
	YCSBF   = Mix{Name: "ycsb-f", About: "50% read, 50% read-modify-write", Read: 50, Modify: 50}
	Counter = Mix{Name: "rmw-counter", About: "100% add one to a counter", Add: 100}
	Writes  = Mix{Name: "writes", About: "100% update", Update: 100}
)

// Mixes lists every mix in the order in which it is reported.
func Mixes() []Mix {
	return []Mix{YCSBA, YCSBB, YCSBC, YCSBD, YCSBF, Counter, Writes}
}

// ParseMix finds a mix by its name; "a" is short for "ycsb-a".
func ParseMix(name string) (Mix, error) {
	var known []string
	for _, m := range Mixes() {
		if name == m.Name || "ycsb-"+name == m.Name {
			return m, nil
		}
		known = append(known, m.Name)
	}
	return Mix{}, fmt.Errorf("unknown workload %q: choose from %s", name, strings.Join(known, ", "))
}

// Only reports whether the mix has no other operation.
func (m Mix) Only(op Op) bool { return m.shares()[op] == 100 }

// Deck returns n operations in random order whose shares are exact to within
// one card, so that even a short run holds the mix it claims.
func (m Mix) Deck(n int, seed uint64) []Op {
	deck := make([]Op, 0, n)
	dealt, sum := 0, 0
	for op, share := range m.shares() {
		sum += share
		for ; dealt < n*sum/100; dealt++ {
			deck = append(deck, Op(op))
		}
	}
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	r.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
	return deck
}

// shares is indexed by Op.
func (m Mix) shares() [5]int {
	return [5]int{Read: m.Read, Update: m.Update, Insert: m.Insert, Modify: m.Modify, Add: m.Add}
}
