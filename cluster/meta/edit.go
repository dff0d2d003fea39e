package meta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	clientv3 "go.etcd.io/etcd/client/v3"
)

var (
	// ErrLeaseLost is what a Member gets whose lease etcd has dropped.
	ErrLeaseLost = errors.New("this node's lease has ended: it must join the cluster again")
	// ErrPresent is what a node gets that joins while another of its name has a lease, as its
	// own former self may have for a while.
	ErrPresent = errors.New("is in the cluster already")
	// ErrDeposed is what a Term gets when another may be coordinator.
	ErrDeposed = errors.New("this node is no longer the coordinator: leave the work to the new one")
)

// fence is what must still be there for its holder to write: a key of a lease,
// told from a later one of the same name by the revision that created it.
type fence struct {
	key     string
	created int64
	gone    error
}

// edit is a transaction in the making, computed from what was seen.
type edit struct {
	seen     *Snapshot
	prefix   string
	compares []clientv3.Cmp
	ops      []clientv3.Op
	needed   map[string]bool
	logs     map[record.LogID]stagedLog
}

// stagedLog is a log as a transaction writes it, and which of its operations does.
type stagedLog struct {
	Log
	op int
}

// need makes the transaction depend on a key being as it was seen, or as absent.
func (e *edit) need(key string) {
	if !e.needed[key] {
		e.needed[key] = true
		e.compares = append(e.compares, clientv3.Compare(clientv3.ModRevision(e.prefix+key), "=", e.seen.raw.modified(key)))
	}
}

// put writes a value over the one that was seen.
func (e *edit) put(key string, value any, opts ...clientv3.OpOption) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode %s: %w", key, err)
	}
	e.need(key)
	e.ops = append(e.ops, clientv3.OpPut(e.prefix+key, string(text), opts...))
	return nil
}

// log returns a log as it is after what the transaction does so far.
func (e *edit) log(id record.LogID) Log {
	if l, staged := e.logs[id]; staged {
		return l.Log
	}
	return e.seen.Logs[id]
}

// putLog writes a log, and may do so again: etcd wants each key once in a transaction.
func (e *edit) putLog(l Log) error {
	if err := e.put(keyLog(l.ID), l); err != nil {
		return err
	}
	last := len(e.ops) - 1
	if was, again := e.logs[l.ID]; again {
		e.ops[was.op] = e.ops[last]
		e.ops, last = e.ops[:last], was.op
	}
	e.logs[l.ID] = stagedLog{l, last}
	return nil
}

func (e *edit) delete(key string) {
	e.need(key)
	e.ops = append(e.ops, clientv3.OpDelete(e.prefix+key))
}

// putMap writes the map, if the step to it keeps every promise.
func (e *edit) putMap(next view.Map) error {
	if err := view.Validate(e.seen.Map, next); err != nil {
		return fmt.Errorf("refuse to write a map: %w", err)
	}
	return e.put(keyMap, next)
}

// change commits what plan makes of the newest metadata. If others were faster, it
// plans again. It returns the snapshot that the plan saw, and the revision of the change,
// or of that snapshot if the plan had nothing to do.
//
// An error of etcd's may mean that the change was made or not: read again to know.
func (s *Store) change(ctx context.Context, f *fence, plan func(*edit) error) (*Snapshot, int64, error) {
	for {
		seen, err := s.Read(ctx)
		if err != nil {
			return nil, 0, err
		}
		e := &edit{seen: seen, prefix: s.prefix, needed: map[string]bool{}, logs: map[record.LogID]stagedLog{}}
		if err := s.stands(f, seen); err != nil {
			return seen, 0, err
		}
		if err := plan(e); err != nil || len(e.ops) == 0 {
			return seen, seen.Revision, err
		}
		if f != nil {
			e.compares = append(e.compares, clientv3.Compare(clientv3.CreateRevision(s.prefix+f.key), "=", f.created))
		}
		done, revision, err := s.kv.commit(ctx, e.compares, e.ops)
		if err != nil {
			return seen, 0, fmt.Errorf("change the cluster's metadata in etcd: %w", err)
		}
		if done {
			return seen, revision, nil
		}
	}
}

// stands tells whether a fence is still there, as of a snapshot.
func (s *Store) stands(f *fence, seen *Snapshot) error {
	if f == nil {
		return nil
	}
	if kv, ok := seen.raw[f.key]; !ok || kv.CreateRevision != f.created {
		return f.gone
	}
	return nil
}
