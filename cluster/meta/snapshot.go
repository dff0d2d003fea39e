package meta

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// Snapshot is all metadata as of one revision of etcd. It never changes.
type Snapshot struct {
	Revision int64
	Settings Settings
	Map      view.Map
	Nodes    map[view.NodeID]Node
	Alive    map[view.NodeID]Presence
	Logs     map[record.LogID]Log
	// Migrations are all that have not ended, and the last that have.
	Migrations map[uint64]Migration
	// Recoveries are those that have not ended.
	Recoveries map[record.LogID]Recovery
	// Returns are those that have not ended, by migration.
	Returns map[uint64]Recovery
	// Coordinator is empty while nobody is.
	Coordinator view.NodeID
	Marks       map[view.NodeID]Marks
	Wishes      map[view.NodeID]Wish
	Balancer    Balancer
	Decision    Decision // the balancer's last; zero if there was none
	// Progress of recoveries, by log and by who tells of it.
	Progress map[record.LogID]map[string]Progress
	// Moves is the progress of migrations.
	Moves map[uint64]MigrationProgress

	lastMigration uint64
	raw           pairs
	decoded       map[string]func(*Snapshot) // what values were decoded to, by key
}

// Dead returns nodes that own ranges, or are in the middle of a migration, and
// have no lease, sorted: what a coordinator recovers.
func (s *Snapshot) Dead() []view.NodeID {
	nodes := s.Map.Owners()
	for n := range s.Nodes {
		if s.migrates(n) {
			nodes = append(nodes, n)
		}
	}
	slices.Sort(nodes)
	return slices.DeleteFunc(slices.Compact(nodes), s.alive)
}

// migrates tells whether a node's log is needed to end a migration.
func (s *Snapshot) migrates(n view.NodeID) bool {
	for _, m := range s.Migrations {
		if m.Stage == Moving && (m.Source == n || m.Target == n) || m.Stage == Returning && m.Target == n {
			return true
		}
	}
	return false
}

// arriving returns what a node owns and does not have whole yet.
func (s *Snapshot) arriving(n view.NodeID) view.Ranges {
	ranges := s.Inheriting(n)
	for _, m := range s.Incoming(n) {
		ranges = ranges.Union(m.Ranges)
	}
	return ranges
}

// Inheriting returns what a node owns and others' logs are needed for still. Until it has replayed them it serves none
// of it: of what a replay has brought so far, nobody knows what was deleted.
func (s *Snapshot) Inheriting(n view.NodeID) (ranges view.Ranges) {
	for r := range s.Replays() {
		for _, p := range r.Parts {
			if p.Heir == n && !p.Done {
				ranges = ranges.Union(p.Ranges)
			}
		}
	}
	return ranges
}

// Replays are recoveries and returns: all of which heirs replay parts of logs.
func (s *Snapshot) Replays() iter.Seq[Recovery] {
	return func(yield func(Recovery) bool) {
		for _, r := range s.Recoveries {
			if !yield(r) {
				return
			}
		}
		for _, r := range s.Returns {
			if !yield(r) {
				return
			}
		}
	}
}

// Replay returns what a share is of, if that has not ended.
func (s *Snapshot) Replay(of Share) (r Recovery, there bool) {
	if of.Return != 0 {
		r, there = s.Returns[of.Return]
	} else {
		r, there = s.Recoveries[of.Log]
	}
	return r, there
}

// Arriving returns what a node owns and does not have whole yet: what it inherits, and what migrations
// move to it, which it serves once their sources do not.
func (s *Snapshot) Arriving(n view.NodeID) view.Ranges { return s.arriving(n) }

// Unserved returns what a node owns and does not serve yet, as far as it has told: of Arriving, all but what it
// has replayed and only lacks copies.
func (s *Snapshot) Unserved(n view.NodeID) view.Ranges {
	served, lacking := view.Ranges{}, view.Ranges{}
	for r := range s.Replays() {
		for _, p := range r.Parts {
			switch {
			case p.Heir != n || p.Done:
			case p.Served:
				served = served.Union(p.Ranges)
			default:
				lacking = lacking.Union(p.Ranges)
			}
		}
	}
	return s.arriving(n).Subtract(served.Subtract(lacking))
}

// Living returns nodes that have a lease, sorted.
func (s *Snapshot) Living() []view.NodeID { return slices.Sorted(maps.Keys(s.Alive)) }

// IsAlive tells whether a node has a lease.
func (s *Snapshot) IsAlive(n view.NodeID) bool { return s.alive(n) }

func (s *Snapshot) alive(n view.NodeID) bool {
	_, ok := s.Alive[n]
	return ok
}

// pairs are keys below the prefix with what etcd has for them.
type pairs map[string]*mvccpb.KeyValue

// modified is the revision of a key's last change, 0 if there is no such key: what
// a transaction compares.
func (p pairs) modified(key string) int64 {
	if kv, ok := p[key]; ok {
		return kv.ModRevision
	}
	return 0
}

// created is the revision at which a key came to be, 0 if there is no such key.
func (p pairs) created(key string) int64 {
	if kv, ok := p[key]; ok {
		return kv.CreateRevision
	}
	return 0
}

// bytes is the length of a value, 0 if there is none.
func (p pairs) bytes(key string) int {
	if kv, ok := p[key]; ok {
		return len(kv.Value)
	}
	return 0
}

// total is the length of all.
func (p pairs) total() (n int) {
	for _, kv := range p {
		n += len(kv.Value)
	}
	return n
}

// snapshotOf decodes all pairs, but for what is the same in old, which may be nil: maps, logs and migrations of thousands of ranges have
// hundreds of kilobytes, there may be hundreds of migrations, and there is news many times a second while anything moves. Keys that this
// version does not know are left alone.
func snapshotOf(raw pairs, revision int64, old *Snapshot) (*Snapshot, error) {
	s := &Snapshot{
		Revision: revision,
		Nodes:    map[view.NodeID]Node{}, Alive: map[view.NodeID]Presence{},
		Logs:       map[record.LogID]Log{},
		Recoveries: map[record.LogID]Recovery{},
		Marks:      map[view.NodeID]Marks{}, Wishes: map[view.NodeID]Wish{},
		Progress:   map[record.LogID]map[string]Progress{},
		Migrations: map[uint64]Migration{}, Returns: map[uint64]Recovery{}, Moves: map[uint64]MigrationProgress{},
		raw: raw, decoded: map[string]func(*Snapshot){},
	}
	var first int64
	for _, key := range slices.Sorted(maps.Keys(raw)) {
		kv := raw[key]
		if s.take(key, old) {
			continue
		}
		if err := s.decode(key, kv.Value); err != nil {
			return nil, fmt.Errorf("read %s from etcd: %w", key, err)
		}
		// The oldest wish to be coordinator is the one that was granted.
		if strings.HasPrefix(key, dirCoordinator) && (first == 0 || kv.CreateRevision < first) {
			first, s.Coordinator = kv.CreateRevision, view.NodeID(kv.Value)
		}
	}
	return s, nil
}

// take takes a value from an older snapshot, if it is the same there. Snapshots never change, so both can have it.
func (s *Snapshot) take(key string, old *Snapshot) bool {
	if old == nil {
		return false
	}
	put, was, now := old.decoded[key], old.raw[key], s.raw[key]
	if put == nil || was == nil || was != now && !bytes.Equal(was.Value, now.Value) {
		return false
	}
	put(s)
	s.decoded[key] = put
	return true
}

// keep notes how a value that was decoded gets into later snapshots.
func (s *Snapshot) keep(key string, put func(*Snapshot)) { s.decoded[key] = put }

func (s *Snapshot) decode(key string, value []byte) error {
	dir, name := key[:strings.LastIndex(key, "/")+1], view.NodeID(key[strings.LastIndex(key, "/")+1:])
	switch {
	case key == keySettings:
		return json.Unmarshal(value, &s.Settings)
	case key == keyMap:
		err := json.Unmarshal(value, &s.Map)
		m := s.Map
		s.keep(key, func(s *Snapshot) { s.Map = m })
		return err
	case key == keyBalancer, key == keyDecision:
		return s.decodeBalancer(key, value)
	case key == keyMigrationCounter:
		return json.Unmarshal(value, &s.lastMigration)
	case dir == dirMigrations:
		return into(s.Migrations, value, func(m Migration) uint64 {
			s.keep(key, func(s *Snapshot) { s.Migrations[m.ID] = m })
			return m.ID
		})
	case dir == dirReturns:
		return into(s.Returns, value, func(r Recovery) uint64 { return r.Return })
	case dir == dirMoves:
		return into(s.Moves, value, func(p MigrationProgress) uint64 {
			s.keep(key, func(s *Snapshot) { s.Moves[p.ID] = p })
			return p.ID
		})
	case dir == dirAlive:
		return into(s.Alive, value, func(Presence) view.NodeID { return name })
	case dir == dirNodes:
		return into(s.Nodes, value, func(n Node) view.NodeID { return n.ID })
	case dir == dirLogs:
		return into(s.Logs, value, func(l Log) record.LogID {
			s.keep(key, func(s *Snapshot) { s.Logs[l.ID] = l })
			return l.ID
		})
	case dir == dirRecoveries:
		return into(s.Recoveries, value, func(r Recovery) record.LogID { return r.Log })
	case dir == dirMarks:
		return into(s.Marks, value, func(Marks) view.NodeID { return name })
	case dir == dirWishes:
		return into(s.Wishes, value, func(Wish) view.NodeID { return name })
	case strings.HasPrefix(key, dirProgress):
		return s.decodeProgress(string(name), value)
	}
	return nil
}

func into[K comparable, V any](m map[K]V, value []byte, key func(V) K) error {
	var v V
	if err := json.Unmarshal(value, &v); err != nil {
		return err
	}
	m[key(v)] = v
	return nil
}
