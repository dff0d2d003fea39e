package server_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/client"
	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/internal/await"
)

// collections are what functions keep in many records of one hash tag, which is a collection's name: an ordered map, a board, and a list of a
// graph. Beside them lies a value of many pieces. One goroutine changes them, so it knows every answer.
type collections struct {
	w       *world
	c       *client.Client
	random  *rand.Rand
	forest  string // the map's name
	tree    map[string]string
	winners string // the board's
	board   map[string]int64
	friends string // the graph's
	list    map[uint64]bool
	large   []byte
	steps   atomic.Int64
}

// collect fills collections of so many elements, in a slot of a node's.
func (w *world) collect(of view.NodeID, elements int) *collections {
	w.t.Helper()
	seed, c := rand.Uint64(), w.dial(w.all()...)
	w.t.Logf("seed %d", seed)
	for _, module := range []string{"tree", "rank", "tao"} {
		code, err := os.ReadFile("../examples/functions/" + module + ".wasm")
		w.must(err)
		w.must(c.InstallModule(patient(w.t), module, code, false))
	}
	l := &collections{
		w: w, c: c, random: rand.New(rand.NewPCG(seed, 0)), large: bytes.Repeat([]byte("many pieces "), 40_000),
		tree: map[string]string{}, board: map[string]int64{}, list: map[uint64]bool{},
	}
	l.forest, l.winners, l.friends = w.named("forest", of), w.named("winners", of), w.named("friends", of)
	for node := range w.nodes {
		at := w.login(node, "", "")
		for _, function := range []string{"tree_get", "rank_count", "assoc_count"} {
			await.True(w.t, node+" has "+function, func() bool { // Whose key it is, or what it lacks, it says in other words.
				err := at.FCallRO(patient(w.t), function, []string{l.forest}).Err()
				return err == nil || !strings.Contains(err.Error(), "not found")
			})
		}
	}
	_, err := c.Do(patient(w.t), client.Put(0, l.picture(), l.large))
	w.must(err)
	for i := range elements {
		l.put(fmt.Sprintf("stays-%06d", i))
		l.rank(fmt.Sprintf("stays-%06d", i))
		l.befriend(uint64(i))
	}
	return l
}

// named is a name whose slot is a node's.
func (w *world) named(name string, of view.NodeID) string {
	for i := 0; ; i++ {
		if name := fmt.Sprint(name, i); w.has(of, name) {
			return name
		}
	}
}

func (w *world) has(n view.NodeID, key string) bool {
	of, _ := w.owner(key)
	return of == n
}

func (l *collections) picture() []byte { return []byte("{" + l.forest + "}:picture") }

// slots are the collections' places.
func (l *collections) slots() (all []uint16) {
	for _, name := range []string{l.forest, l.winners, l.friends} {
		_, place := l.w.owner(name)
		all = append(all, place.Slot())
	}
	return all
}

// must calls a function, and wants an answer.
func (l *collections) must(want, name, function string, args ...any) {
	if got := l.call(name, function, args...); got != want {
		l.w.t.Errorf("%s %v answers %.60q, want %.60q", function, args, got, want)
	}
}

func (l *collections) call(name, function string, args ...any) string {
	var list [][]byte
	for _, a := range args {
		list = append(list, fmt.Append(nil, a))
	}
	ctx, cancel := context.WithTimeout(context.Background(), testPatience)
	defer cancel()
	r, err := l.c.Do(ctx, client.Invoke(0, []byte(name), function, list...))
	if err != nil {
		l.w.t.Errorf("%s %v: %v", function, args, err)
	}
	return string(r.Value)
}

// answer is how functions answer yes and no.
func answer(yes bool) string {
	if yes {
		return "1"
	}
	return "0"
}

func (l *collections) put(key string) {
	value := fmt.Sprint(l.random.Uint64(), strings.Repeat("v", l.random.IntN(120)))
	_, had := l.tree[key]
	l.must(answer(!had), l.forest, "tree_put", key, value)
	l.tree[key] = value
}

func (l *collections) rank(member string) {
	_, had := l.board[member]
	l.board[member] = l.random.Int64N(1000)
	l.must(answer(!had), l.winners, "rank_set", member, l.board[member])
}

func (l *collections) befriend(id uint64) {
	l.must(answer(!l.list[id]), l.friends, "assoc_add", 1, 7, id, id%1000, "since then")
	l.list[id] = true
}

// change does something to each of the collections: what is added or removed is of elements that come and go.
func (l *collections) change() {
	n := l.random.IntN(300)
	element, id := fmt.Sprintf("comes-%06d", n), uint64(1_000_000+n)
	if l.random.IntN(2) == 0 {
		l.put(element)
		l.rank(element)
		l.befriend(id)
	} else {
		_, inTree := l.tree[element]
		l.must(answer(inTree), l.forest, "tree_del", element)
		_, onBoard := l.board[element]
		l.must(answer(onBoard), l.winners, "rank_del", element)
		l.must(answer(l.list[id]), l.friends, "assoc_delete", 1, 7, id)
		delete(l.tree, element)
		delete(l.board, element)
		delete(l.list, id)
	}
	l.steps.Add(1)
}

// whileChanged changes the collections all the time while f runs, and somebody else, a client of Redis Cluster, reads what stays.
func (l *collections) whileChanged(f func()) {
	var stop atomic.Bool
	var all sync.WaitGroup
	all.Go(func() {
		for !stop.Load() && !l.w.t.Failed() {
			l.change()
		}
	})
	kept := maps.Clone(l.tree)
	maps.DeleteFunc(kept, func(key, _ string) bool { return !strings.HasPrefix(key, "stays-") })
	want := inOrder(kept)
	c := l.w.client(l.w.all()...)
	all.Go(func() {
		for !stop.Load() && !l.w.t.Failed() {
			ctx, cancel := context.WithTimeout(context.Background(), testPatience)
			got, err := c.FCallRO(ctx, "tree_range", []string{l.forest}, "stays-", "stays.", len(kept)+1).Text()
			cancel()
			if err != nil || got != want {
				l.w.t.Errorf("a reader finds %d bytes of %d, %v", len(got), len(want), err)
			}
		}
	})
	defer all.Wait()
	defer stop.Store(true)
	l.goesOn()
	f()
	l.goesOn()
}

// goesOn waits until more was changed.
func (l *collections) goesOn() {
	want := l.steps.Load() + 20
	await.True(l.w.t, "collections change", func() bool { return l.steps.Load() >= want || l.w.t.Failed() })
}

// inOrder is what a range of a whole tree answers.
func inOrder(tree map[string]string) string {
	var b []byte
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(key)))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(tree[key])))
		b = append(append(b, key...), tree[key]...)
	}
	return string(b)
}

// check finds every element of each collection, and no other.
func (l *collections) check() {
	l.w.t.Helper()
	l.must(inOrder(l.tree), l.forest, "tree_range", "", "", len(l.tree)+1)
	members := slices.SortedFunc(maps.Keys(l.board), func(a, b string) int {
		return cmp.Or(cmp.Compare(l.board[b], l.board[a]), cmp.Compare(a, b))
	})
	var standing strings.Builder
	for _, m := range members {
		fmt.Fprintf(&standing, "%d %s\n", l.board[m], m)
	}
	l.must(standing.String(), l.winners, "rank_top", 0, len(members)+1)
	l.must(fmt.Sprint(len(l.list)), l.friends, "assoc_count", 1, 7)
	got := l.call(l.friends, "assoc_range", 1, 7, 0, len(l.list)+1)
	for b := []byte(got); len(b) >= 16; b = b[16+binary.LittleEndian.Uint32(b[12:]):] {
		if id := binary.LittleEndian.Uint64(b); !l.list[id] {
			l.w.t.Errorf("the list has %d, which was removed", id)
		}
	}
	if each := 16 + len("since then"); len(got) != len(l.list)*each {
		l.w.t.Errorf("the list has %d bytes, want %d elements of %d", len(got), len(l.list), each)
	}
	r, err := l.c.Do(patient(l.w.t), client.Get(0, l.picture()))
	if err != nil || !bytes.Equal(r.Value, l.large) {
		l.w.t.Errorf("the large value has %d bytes, want %d, %v", len(r.Value), len(l.large), err)
	}
}

// records is how many records of theirs a node has.
func (l *collections) records(at string) (n int64) {
	l.w.t.Helper()
	c := l.w.login(at, "", "")
	for _, slot := range l.slots() {
		in, err := c.ClusterCountKeysInSlot(patient(l.w.t), int(slot)).Result()
		l.w.must(err)
		n += in
	}
	return n
}

// move moves the collections, and them alone.
func (l *collections) move(from, to view.NodeID, o meta.MigrationOptions) meta.Migration {
	l.w.t.Helper()
	var ranges view.Ranges
	for _, slot := range l.slots() {
		ranges = ranges.Union(view.RangesOf(view.SlotsRange(slot, slot)))
	}
	m := l.w.migrate(from, to, ranges, o)
	if m = l.w.ended(m.ID); m.Stage != meta.Done {
		l.w.t.Fatalf("%+v ended as %s: %s", o, m.Stage, m.Why)
	}
	l.w.await("the source drops what left it", func(s *meta.Snapshot) bool { return len(s.Leaving(from)) == 0 })
	return m
}

func TestLargeCollectionsMoveWithTheirElementsWhileTheyChange(t *testing.T) {
	w := newWorld(t)
	w.start("n1", "n2", "n3")
	w.await("copies", copied)
	elements := 2000
	if testing.Short() {
		elements = 500
	}
	l := w.collect("n1", elements)
	to, from := view.NodeID("n2"), view.NodeID("n1")
	for _, o := range []meta.MigrationOptions{{}, {Ownership: meta.OwnershipLate}, {PriorityPulls: meta.PriorityPullsNone}} {
		l.whileChanged(func() { l.move(from, to, o) })
		l.check()
		from, to = to, from
	}
	before := l.records("n2")
	if least := int64(elements / 20); before < least {
		t.Fatalf("all is in %d records, want %d at least", before, least)
	}
	l.move("n2", "n3", meta.MigrationOptions{})
	if here, there := l.records("n3"), l.records("n2"); here != before || there != 0 {
		t.Errorf("of %d records %d have come, and %d are where they were", before, here, there)
	}
	l.check()
}

func TestCollectionsThatLieOnDiskMoveWithTheirElements(t *testing.T) {
	long(t)
	w := newWorld(t)
	w.memory, w.wide = 1<<20, 1000
	w.start("n1", "n2", "n3")
	w.await("copies", copied)
	l := w.collect("n1", 1500)
	c := w.client("n1", "n2", "n3")
	to, from := view.NodeID("n2"), view.NodeID("n1")
	for _, cold := range []string{"", meta.ColdScan, meta.ColdRead} {
		w.write(c, 0, coldKeys) // Collections that nobody used go to disk.
		l.whileChanged(func() {
			if m := l.move(from, to, meta.MigrationOptions{Cold: cold}); (cold == "") != (m.Cold > 0) {
				t.Errorf("%q: %d records were known of only", cold, m.Cold)
			}
		})
		l.check()
		from, to = to, from
	}
	w.check(c, 0, coldKeys)
}
