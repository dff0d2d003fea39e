package meta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// modelWorld is a cluster of model nodes whose metadata goes through the real transactions.
type modelWorld struct {
	etcd   *memory
	store  *Store
	term   *Term
	nodes  []*modelNode
	logs   map[record.LogID]*modelLog
	acked  [modelKeys]int // what each key was last said to be; 0: it is not there
	value  int
	lives  int
	tokens int              // of copies
	asked  map[uint64]Asked // what targets have asked for, and sources not heard yet
	moves  int              // how many more migrations may be asked for
	falls  int              // how many more faults there may be
	flaw   string
	trace  []string
	err    error

	cached *Snapshot
}

func newModelWorld(nodes int, flaw string) *modelWorld {
	etcd := &memory{revision: 1, pairs: map[string]*mvccpb.KeyValue{}}
	w := &modelWorld{
		etcd: etcd, store: &Store{kv: etcd, prefix: "/m/", log: quiet},
		logs: map[record.LogID]*modelLog{}, asked: map[uint64]Asked{}, flaw: flaw, moves: 4, falls: 6,
	}
	_, err := w.store.Configure(context.Background(), DefaultSettings())
	w.must(err)
	etcd.revision++
	etcd.put("/m/coordinator/1", []byte("coordinator"))
	w.term = &Term{writer: writer{w.store, fence{"coordinator/1", etcd.revision, ErrDeposed}}}
	var ids []view.NodeID
	for i := range nodes {
		n := &modelNode{w: w, id: view.NodeID(string(rune('a' + i)))}
		w.nodes = append(w.nodes, n)
		ids = append(ids, n.id)
	}
	for _, n := range w.nodes {
		n.enter()
	}
	w.must(w.term.Begin(context.Background(), ids...))
	for _, n := range w.nodes {
		n.see()
	}
	return w
}

// now is the metadata as of now.
func (w *modelWorld) now() *Snapshot {
	if w.cached == nil || w.cached.Revision != w.etcd.revision {
		s, err := w.store.Read(context.Background())
		w.must(err)
		w.cached = s
	}
	return w.cached
}

func (w *modelWorld) must(err error) {
	if err != nil {
		panic(err)
	}
}

// try is for what may be refused as another was faster. A transaction that makes no sense is none of that.
func (w *modelWorld) try(err error) {
	if err != nil && (strings.Contains(err.Error(), "duplicate key") || strings.Contains(err.Error(), "refuse to write")) {
		w.fail(err)
	}
}

func (w *modelWorld) fail(err error) {
	if w.err == nil && err != nil {
		w.err = err
	}
}

func (w *modelWorld) node(id view.NodeID) *modelNode {
	return w.nodes[slices.IndexFunc(w.nodes, func(n *modelNode) bool { return n.id == id })]
}

// expire ends a node's lease.
func (w *modelWorld) expire(n *modelNode) {
	w.etcd.revision++
	delete(w.etcd.pairs, w.store.prefix+keyAlive(n.id))
}

// recover is what a coordinator does about a dead node, with all heirs that there are or one of them.
func (w *modelWorld) recover(n *modelNode, one bool) {
	s := w.now()
	var heirs []view.NodeID
	for _, id := range s.Living() {
		if len(s.Unfit(id).Intersect(s.Map.Ranges(n.id))) == 0 {
			heirs = append(heirs, id)
		}
	}
	if one && len(heirs) > 0 {
		heirs = heirs[len(heirs)-1:]
	}
	_, err := w.term.Recover(context.Background(), n.id, heirs...)
	w.try(err)
	if err == nil && w.flaw == "the part of a migration is forgotten" {
		w.edit(keyRecovery(n.log), func(r *Recovery) { r.Parts = r.Parts[min(1, len(r.Parts)-1):] })
	}
}

// edit spoils the metadata, for flaws.
func (w *modelWorld) edit(key string, f any) {
	w.etcd.revision++
	switch f := f.(type) {
	case func(*Recovery):
		respell(w, key, f)
	case func(*Log):
		respell(w, key, f)
	}
}

func respell[T any](w *modelWorld, key string, f func(*T)) {
	var v T
	w.must(json.Unmarshal(w.etcd.pairs[w.store.prefix+key].Value, &v))
	f(&v)
	text, err := json.Marshal(v)
	w.must(err)
	w.etcd.put(w.store.prefix+key, text)
}

// check looks at all promises. The first that does not hold is why it fails.
func (w *modelWorld) check() error {
	if w.flaw == "nothing is left behind" || w.flaw == "a copy leaves no trace" {
		for id, l := range w.now().Logs {
			if len(l.Leaving) > 0 {
				w.edit(keyLog(id), func(l *Log) { l.Leaving = nil })
			}
		}
	}
	s := w.now()
	for id := range w.logs {
		if _, needed := s.Recoveries[id]; s.Logs[id].Retired && !needed {
			delete(w.logs, id) // Its replicas are dropped.
		}
	}
	for key := range modelKeys {
		w.fail(w.checkServed(key))
		w.fail(w.checkCovered(s, key))
	}
	return w.err
}

// checkServed: a place is served by one node at most, and rightly.
func (w *modelWorld) checkServed(key int) error {
	var by *modelNode
	for _, n := range w.nodes {
		if !n.serves(key) {
			continue
		}
		if by != nil {
			return fmt.Errorf("key %d is served by %s and %s", key, by.id, n.id)
		}
		by = n
		if got := n.store.index[key].val; got != w.acked[key] && !n.cold(key) {
			return fmt.Errorf("key %d is %d and %s says %d", key, w.acked[key], n.id, got)
		}
	}
	return nil
}

// checkCovered: a place has an owner, and what its log and those of its open replays and migrations
// have of it is what was acknowledged last.
func (w *modelWorld) checkCovered(s *Snapshot, key int) error {
	p := modelPlace(key)
	owner, owned := s.Map.Owner(p)
	if !owned || s.Logs[s.Nodes[owner].Log].Retired {
		return fmt.Errorf("key %d has no owner whose log lives", key)
	}
	logs := map[record.LogID]bool{s.Nodes[owner].Log: true}
	for r := range s.Replays() {
		for _, part := range r.Parts {
			if part.Done || !part.Ranges.Contains(p) {
				continue
			}
			if part.Heir != owner {
				return fmt.Errorf("key %d is %s's, and %s is to replay log %d of it", key, owner, part.Heir, r.Log)
			}
			logs[r.Log] = true
		}
	}
	for _, m := range s.Migrations {
		if m.Stage == Moving && m.Ranges.Contains(p) {
			if m.Target != owner {
				return fmt.Errorf("key %d moves to %s, and is %s's", key, m.Target, owner)
			}
			logs[m.SourceLog] = true
		}
	}
	var entries []modelEntry
	for id := range logs {
		if w.logs[id] == nil {
			return fmt.Errorf("key %d needs log %d, which is gone", key, id)
		}
		entries = append(entries, w.logs[id].counting(s.Logs[id].Floors, modelRange(key))...)
	}
	if got := newest(entries)[key].val; got != w.acked[key] {
		return fmt.Errorf("key %d is %d and a recovery from %v would find %d", key, w.acked[key], logs, got)
	}
	return nil
}

// done tells whether nothing is left to do, and what is.
func (w *modelWorld) done() error {
	s := w.now()
	for _, m := range s.AllMigrations() {
		if !m.Stage.Ended() {
			return fmt.Errorf("migration %d is %s", m.ID, m.Stage)
		}
	}
	for _, n := range w.nodes {
		switch {
		case !n.works():
			return fmt.Errorf("%s does not work", n.id)
		case len(s.Arriving(n.id)) > 0:
			return fmt.Errorf("%s waits for %v", n.id, s.Arriving(n.id))
		case len(n.copies)+len(n.departures) > 0:
			return fmt.Errorf("%s still copies %d, and %d are copied", n.id, len(n.copies), len(n.departures))
		case len(s.Leaving(n.id)) > 0 || len(n.arrivals) > 0 || len(n.store.expects) > 0:
			return fmt.Errorf("%s has not ended: leaving %v, %d arrivals, expects %v", n.id, s.Leaving(n.id), len(n.arrivals), n.store.expects)
		}
	}
	if len(s.Recoveries)+len(s.Returns) > 0 {
		return errors.New("recoveries go on")
	}
	for key := range modelKeys {
		if owner, _ := s.Map.Owner(modelPlace(key)); !w.node(owner).serves(key) {
			return fmt.Errorf("%s does not serve key %d", owner, key)
		}
	}
	return nil
}
