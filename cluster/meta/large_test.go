package meta

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// fine is a map of two nodes, and n ranges of the first that do not touch.
func fine(t *testing.T, n int) (view.Map, view.Ranges) {
	t.Helper()
	m, err := view.Initial("a", "b")
	if err != nil {
		t.Fatal(err)
	}
	return m, evenlyCut(m, n)
}

func pairOf(t *testing.T, raw pairs, key string, value any) {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	raw[key] = &mvccpb.KeyValue{Key: []byte(key), Value: text}
}

// same compares what snapshots say, however they came to it.
func same(a, b *Snapshot) bool {
	x, y := *a, *b
	x.decoded, y.decoded = nil, nil
	return reflect.DeepEqual(x, y)
}

func TestWhatIsTheSameIsTakenFromTheSnapshotBefore(t *testing.T) {
	m, odd := fine(t, 300)
	split, err := m.Apply(view.Move{Ranges: odd, From: "a", To: "b"})
	if err != nil {
		t.Fatal(err)
	}
	raw := pairs{}
	pairOf(t, raw, keyMap, split)
	pairOf(t, raw, keyMigration(1), Migration{ID: 1, Source: "a", Target: "b", Ranges: odd, Stage: Moving})
	pairOf(t, raw, keyLog(7), Log{ID: 7, Node: "b", Floors: []Floor{{Ranges: odd, Batch: 3}}})
	pairOf(t, raw, keyLog(8), Log{ID: 8, Node: "a"})
	pairOf(t, raw, keyMove(1), MigrationProgress{ID: 1, Bytes: 5})
	old, err := snapshotOf(raw, 1, nil)
	if err != nil || len(old.decoded) != len(raw) {
		t.Fatalf("%d of %d values are kept: %v", len(old.decoded), len(raw), err)
	}
	changes := map[string]any{
		keyMap:          m,
		keyMigration(1): Migration{ID: 1, Source: "a", Target: "b", Ranges: odd, Stage: Done},
		keyLog(7):       Log{ID: 7, Node: "b", Leaving: odd},
		keyLog(8):       Log{ID: 8, Node: "a", Copies: 2},
		keyMove(1):      MigrationProgress{ID: 1, Bytes: 6},
	}
	for key, value := range changes {
		next := pairs{}
		for k, kv := range raw {
			next[k] = kv
		}
		pairOf(t, next, key, value)
		got, err := snapshotOf(next, 2, old)
		if err != nil {
			t.Fatal(err)
		}
		want, err := snapshotOf(next, 2, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !same(got, want) {
			t.Errorf("after a change of %s the snapshot is not what etcd has", key)
		}
		if len(got.decoded) != len(raw) {
			t.Errorf("after a change of %s %d values are kept", key, len(got.decoded))
		}
		delete(next, key)
		if got, err = snapshotOf(next, 3, old); err != nil || got.decoded[key] != nil {
			t.Errorf("%s is gone and still there: %v", key, err)
		}
	}
}

func TestAMigrationThatIsTooFinelyCutIsRefused(t *testing.T) {
	m, odd := fine(t, MaxRanges)
	s := &Snapshot{
		Map: m, Nodes: map[view.NodeID]Node{"a": {ID: "a"}, "b": {ID: "b"}}, Alive: map[view.NodeID]Presence{"a": {}, "b": {}},
	}
	ask := func(ranges view.Ranges) error { return s.possible(Migration{Source: "a", Target: "b", Ranges: ranges}) }
	if err := ask(odd); err != nil {
		t.Errorf("%d ranges: %v", len(odd), err)
	}
	_, many := fine(t, MaxRanges+1)
	if err := ask(many); err == nil || !strings.Contains(err.Error(), fmt.Sprint(MaxRanges)) {
		t.Errorf("%d ranges: %v", len(many), err)
	}
	// As many ranges as there may be, each of which lies in the middle of another.
	split, err := m.Apply(view.Move{Ranges: evenlyCut(m, maxSpans/2), From: "a", To: "b"})
	if err != nil {
		t.Fatal(err)
	}
	s.Map = split
	if err := ask(inner(split.Ranges("a")[:100])); err == nil || !strings.Contains(err.Error(), "together") {
		t.Errorf("a map of %d ranges is cut further: %v", len(split.Spans()), err)
	}
	if err := ask(split.Ranges("a")[:100]); err != nil {
		t.Errorf("whole ranges cannot move from a map of %d: %v", len(split.Spans()), err)
	}
}

// evenlyCut is every second of 2n parts of what a owns.
func evenlyCut(m view.Map, n int) view.Ranges {
	return evenly(m.Ranges("a"), n)
}

// evenly is every second of 2n parts of the first of some ranges.
func evenly(ranges view.Ranges, n int) (odd view.Ranges) {
	whole := ranges[0]
	step := (whole.Last - whole.First) / record.Place(2*n)
	for i := range n {
		first := whole.First + step*2*record.Place(i) + step
		odd = append(odd, view.Range{First: first, Last: first + step - 1})
	}
	return odd
}

// inner are ranges without their ends.
func inner(ranges view.Ranges) (within view.Ranges) {
	for _, r := range ranges {
		within = append(within, view.Range{First: r.First + 1, Last: r.Last - 1})
	}
	return within
}
