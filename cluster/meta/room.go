package meta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// etcd takes nothing more, leases neither, once the file of a member has reached its quota. So whoever brings much leaves
// half of it to others, and has etcd forget the past, whose room is used again.

// usualQuota is of an etcd that does not tell: those before 3.6 do not.
const usualQuota = 2 << 30

// roomTimeout is how long a member may take to tell how full it is. Tests change it.
var roomTimeout = time.Second

// CrampedError says that etcd has no room for what can wait.
type CrampedError struct {
	Member             string
	File, InUse, Quota int64
}

func (e *CrampedError) Error() string {
	what := fmt.Sprintf("etcd at %s uses %d MiB of its quota of %d, and the upper half is not for code", e.Member, e.InUse>>20, e.Quota>>20)
	if e.InUse <= e.Quota/2 {
		what = fmt.Sprintf("the file of etcd at %s has %d MiB, and its quota is %d: have the operator defragment it", e.Member, e.File>>20, e.Quota>>20)
	}
	return what + "; no code can be installed until there is room"
}

// cramped judges what a member tells.
func cramped(member string, file, inUse, quota int64) error {
	switch {
	case quota < 0: // It has none.
		return nil
	case quota == 0:
		quota = usualQuota
	}
	if inUse == 0 {
		inUse = file // It does not tell.
	}
	// A file never shrinks by itself, and what is free in it is used again: it may be larger than what is in use.
	if inUse > quota/2 || file > quota/8*7 {
		return &CrampedError{member, file, inUse, quota}
	}
	return nil
}

// room tells why no more should be brought. All members are asked: the first that is full stops all.
func (s *Store) room(ctx context.Context) error {
	members := s.client.Endpoints()
	answers := make([]error, len(members))
	told := make([]bool, len(members))
	var asking sync.WaitGroup
	for i, m := range members {
		asking.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, roomTimeout)
			defer cancel()
			resp, err := s.client.Status(ctx, m)
			switch code := status.Code(err); {
			case err == nil:
				told[i], answers[i] = true, cramped(m, resp.DbSize, resp.DbSizeInUse, resp.DbSizeQuota)
			case code == codes.Unimplemented, code == codes.PermissionDenied:
				told[i] = true // Whoever runs it does not want it to be known.
			default:
				answers[i] = fmt.Errorf("ask etcd at %s how full it is: %w", m, err)
			}
		})
	}
	asking.Wait()
	some := false
	for i := range members {
		if told[i] && answers[i] != nil {
			return answers[i]
		}
		some = some || told[i]
	}
	if some {
		return nil
	}
	return errors.Join(answers...)
}

// compact has etcd forget what was replaced before a revision. Who watches and is behind reads everything anew. An etcd with
// passwords lets only its root do so: it must forget by itself, and is full at half of its quota if it does not.
func (s *Store) compact(ctx context.Context, revision int64) {
	_, err := s.client.Compact(ctx, revision)
	switch {
	case err == nil, ctx.Err() != nil, errors.Is(err, rpctypes.ErrCompacted):
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		s.mayNotCompact.Do(func() {
			s.log.Warn("etcd does not let this node compact its history: run etcd with --auto-compaction-mode=periodic --auto-compaction-retention=5m")
		})
	default:
		s.log.Warn("etcd's history could not be compacted; it is tried again", "revision", revision, "error", err)
	}
}

// forgetting is when etcd was last had to forget, and what it will forget the next time.
type forgetting struct {
	At       int64 `json:"at"` // in milliseconds
	Revision int64 `json:"revision"`
}

// forgetEvery is how often etcd forgets what was replaced before the last time.
const forgetEvery = 5 * time.Minute

// Forget has etcd forget what was replaced more than a while ago, if none of the nodes has done so of late. An etcd that
// compacts by itself has nothing to do then.
func (s *Store) Forget(ctx context.Context) error { return s.forget(ctx, time.Now().UnixMilli()) }

func (s *Store) forget(ctx context.Context, now int64) error {
	key := s.prefix + books + "forgotten"
	resp, err := s.client.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("read %s from etcd: %w", key, err)
	}
	var last forgetting
	var modified int64
	if len(resp.Kvs) > 0 {
		modified = resp.Kvs[0].ModRevision
		if err := json.Unmarshal(resp.Kvs[0].Value, &last); err != nil {
			return fmt.Errorf("%s in etcd makes no sense: %w", key, err)
		}
	}
	if since := now - last.At; since > -forgetEvery.Milliseconds() && since < forgetEvery.Milliseconds() {
		return nil
	}
	text, err := json.Marshal(forgetting{now, resp.Header.Revision})
	if err != nil {
		return err
	}
	same := clientv3.Compare(clientv3.ModRevision(key), "=", modified)
	done, _, err := s.kv.commit(ctx, []clientv3.Cmp{same}, []clientv3.Op{clientv3.OpPut(key, string(text))})
	if err != nil {
		return fmt.Errorf("write %s to etcd: %w", key, err)
	}
	if done && last.Revision > 0 {
		s.compact(ctx, last.Revision)
	}
	return nil
}
