package meta

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ostrodb/ostro/cluster/view"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// weighed is a cluster of some nodes in an etcd that counts bytes.
type weighed struct {
	t       *testing.T
	etcd    *memory
	store   *Store
	term    *Term
	ids     []view.NodeID
	members []*Member
}

func weigh(t *testing.T, ids ...view.NodeID) *weighed {
	t.Helper()
	etcd := &memory{revision: 1, pairs: map[string]*mvccpb.KeyValue{}}
	w := &weighed{t: t, etcd: etcd, store: &Store{kv: etcd, prefix: "/ostro/default/", log: quiet}, ids: ids}
	_, err := w.store.Configure(t.Context(), DefaultSettings())
	ok(t, err)
	etcd.revision++
	etcd.put(w.store.prefix+"coordinator/1", []byte("coordinator"))
	w.term = &Term{writer: writer{w.store, fence{"coordinator/1", etcd.revision, ErrDeposed}}}
	for _, id := range ids {
		m, err := w.store.enter(t.Context(), nodeNamed(id), &Lease{})
		ok(t, err)
		w.members = append(w.members, m)
	}
	ok(t, w.term.Begin(t.Context(), ids...))
	return w
}

// move begins a migration between two of them; one that cannot begin is given up.
func (w *weighed) move(from, to int, ranges view.Ranges) (Migration, error) {
	w.t.Helper()
	m, err := w.store.Migrate(w.t.Context(), MigrationRequest{Source: w.ids[from], Target: w.ids[to], Ranges: ranges})
	ok(w.t, err)
	begun, err := w.members[from].Move(w.t.Context(), m.ID, w.members[to].Asks(1, 1))
	if err != nil {
		ok(w.t, w.store.CancelMigration(w.t.Context(), m.ID))
	}
	return begun, err
}

// end ends a migration, and its source drops what it had.
func (w *weighed) end(from, to int, m Migration) {
	w.t.Helper()
	ok(w.t, w.members[to].CompleteMigration(w.t.Context(), m.ID, MigrationStats{}))
	ok(w.t, w.members[from].Retracted(w.t.Context(), m.Ranges, 9, 9))
}

// dies has one of them die, and the others take what it had.
func (w *weighed) dies(n int) error {
	w.etcd.revision++
	delete(w.etcd.pairs, w.store.prefix+keyAlive(w.ids[n]))
	_, err := w.term.Recover(w.t.Context(), w.ids[n], slices.Concat(w.ids[:n], w.ids[n+1:])...)
	return err
}

var six = []view.NodeID{"node1", "node2", "node3", "node4", "node5", "node6"}

// Two migrations of nearly as many ranges as one may have, which cut the map as finely as may be.
func TestANodeHasNoMoreUnderWayThanItsRecoveryHasRoomFor(t *testing.T) {
	for dies := range six[:3] {
		w := weigh(t, six...)
		odd := evenly(read(t, w.store).Map.Ranges("node1"), 8000)
		_, err := w.move(0, 1, odd[:3400])
		ok(t, err)
		_, err = w.move(0, 2, odd[3400:7000])
		if wantError(t, err, "etcd would not take a recovery of node1"); !errors.Is(err, ErrNotYet) {
			t.Fatalf("%v is no reason to wait", err)
		}
		_, err = w.move(0, 2, odd[7000:])
		ok(t, err)
		if err := w.dies(dies); err != nil {
			t.Errorf("%s dies meanwhile: %v", six[dies], err)
		}
	}
}

// What can never begin is not waited for.
func TestAMigrationThatMakesARecoveryTooLargeByItselfIsRefused(t *testing.T) {
	w := weigh(t, six...)
	odd := evenly(read(t, w.store).Map.Ranges("node1"), 8180)
	m, err := w.move(0, 1, odd[:4090])
	ok(t, err)
	w.end(0, 1, m)
	_, err = w.move(0, 2, odd[4090:])
	if wantError(t, err, "move fewer ranges at a time"); errors.Is(err, ErrNotYet) {
		t.Fatalf("%v is a reason to wait", err)
	}
	_, err = w.move(0, 2, odd[4090:6000])
	ok(t, err)
}

// Migrations that wait have ranges, too, and the death of a node ends them all.
func TestWhatWaitsIsNotInTheWayOfARecovery(t *testing.T) {
	for _, waiting := range []int{1, 2, fewWanted, fewWanted + 1, 16} {
		w := weigh(t, six...)
		odd := evenly(read(t, w.store).Map.Ranges("node1"), 8000)
		for at := 0; at < 6000; at += 1000 {
			_, err := w.move(0, 1+at/1000%2, odd[at:at+1000])
			ok(t, err)
		}
		rest := read(t, w.store).Map.Ranges("node1")[:MaxRanges]
		for n := range waiting {
			m, err := w.store.Migrate(t.Context(), MigrationRequest{Source: "node1", Target: six[1+n%5], Ranges: rest})
			ok(t, err)
			if err := read(t, w.store).Ready(m); !errors.Is(err, ErrNotYet) {
				t.Fatalf("%v is no reason to wait", err)
			}
		}
		if err := w.dies(0); err != nil {
			t.Errorf("node1 dies while %d migrations wait: %v", waiting, err)
		}
		if open := read(t, w.store).Open("node1"); len(open) > 0 {
			t.Errorf("%d migrations of a dead node go on", len(open))
		}
	}
}

// Those that are copied change the map when they end, and not when they begin.
func TestWhatIsCopiedAtTheSameTimeHasRoomInARecovery(t *testing.T) {
	w := weigh(t, "node-1", "node-2", "node-3", "node-4", "node-5", "node-6")
	odd := evenly(read(t, w.store).Map.Ranges("node-1"), 8000)
	begin := func(to int, ranges view.Ranges) (Migration, error) {
		m, err := w.store.Migrate(t.Context(), MigrationRequest{
			Source: "node-1", Target: w.ids[to], Ranges: ranges, Options: MigrationOptions{Ownership: OwnershipLate},
		})
		ok(t, err)
		return w.members[to].Copy(t.Context(), m.ID)
	}
	end := func(to int, m Migration) {
		t.Helper()
		ok(t, w.members[0].HandOver(t.Context(), m.ID, Copied{From: 1, FromSegment: 1, Attempt: m.Attempt, Incarnation: w.members[to].Incarnation()}))
	}
	first, err := begin(1, odd[:4000])
	ok(t, err)
	if _, err = begin(2, odd[4000:]); !errors.Is(err, ErrNotYet) {
		t.Errorf("%v is no reason to wait for the other one", err)
		end(2, read(t, w.store).Migrations[2])
	}
	end(1, first)
	ok(t, w.dies(0))
}

// The map may be larger than that, as one of an earlier version. To move ranges back is how it becomes smaller.
func TestAMapThatIsTooLargeCanBeMadeSmaller(t *testing.T) {
	w := weigh(t, "a-node-with-quite-a-long-name-1", "a-node-with-quite-a-long-name-2", "a-node-with-quite-a-long-name-3")
	odd := evenly(read(t, w.store).Map.Ranges(w.ids[0]), 8000)
	_, _, err := w.store.change(t.Context(), nil, func(e *edit) error {
		next, err := e.seen.Map.Apply(view.Move{Ranges: odd, From: w.ids[0], To: w.ids[1]})
		ok(t, err)
		return e.putMap(next)
	})
	ok(t, err)
	if lasting, _ := read(t, w.store).recoveryBytes(w.ids[0]); lasting <= mostStep {
		t.Fatalf("a recovery has %d bytes: the test is for one that is too large", lasting)
	}
	_, err = w.move(0, 2, read(t, w.store).Map.Ranges(w.ids[0])[:10])
	ok(t, err)
	_, err = w.move(1, 0, odd[4000:4100])
	ok(t, err)
	half := odd[5000]
	half.Last = half.First + (half.Last-half.First)/2
	_, err = w.move(1, 0, view.RangesOf(half))
	wantError(t, err, "or ranges back to their neighbours' owners")
}

// Whatever begins, one migration after the other, whoever dies then is recovered.
func TestWhateverHasBegunARecoveryHasRoom(t *testing.T) {
	seeds := uint64(6)
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 7))
		w := weigh(t, six...)
		begun := 0
		for range 24 {
			s := read(t, w.store)
			from, to := rng.IntN(len(six)), rng.IntN(len(six))
			pieces := s.Map.Ranges(six[from])
			if from == to || len(pieces) == 0 {
				continue
			}
			ranges := pieces[:min(len(pieces), MaxRanges)]
			if len(pieces) < 100 {
				ranges = evenly(pieces, 1+rng.IntN(MaxRanges))
			}
			if s.possible(Migration{Source: six[from], Target: six[to], Ranges: ranges}) != nil {
				continue
			}
			m, err := w.move(from, to, ranges)
			if err != nil {
				continue
			}
			begun++
			if rng.IntN(2) == 0 {
				w.end(from, to, m)
			}
		}
		pairs, revision := maps.Clone(w.etcd.pairs), w.etcd.revision
		for n := range six {
			if err := w.dies(n); err != nil {
				t.Errorf("seed %d: after %d migrations %s dies: %v", seed, begun, six[n], err)
			}
			w.etcd.pairs, w.etcd.revision = maps.Clone(pairs), revision
		}
		t.Logf("seed %d: %d migrations, a map of %d spans, at most %d bytes in a step", seed, begun, len(read(t, w.store).Map.Spans()), w.etcd.largest)
	}
}
