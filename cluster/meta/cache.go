package meta

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Cache follows the metadata. Its snapshot may be old, never wrong: it is what was true
// at its revision, and revisions only grow. While etcd is away it stays.
type Cache struct {
	store   *Store
	current atomic.Pointer[Snapshot]
	cancel  context.CancelFunc
	stopped chan struct{}

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when current changes
}

var errCompacted = errors.New("etcd has compacted what comes next")

// Follow reads the metadata and keeps on following it until Close.
func (s *Store) Follow(ctx context.Context) (*Cache, error) {
	first, err := s.Read(ctx)
	if err != nil {
		return nil, err
	}
	background, cancel := context.WithCancel(context.Background())
	c := &Cache{store: s, cancel: cancel, stopped: make(chan struct{}), changed: make(chan struct{})}
	c.current.Store(first)
	go c.run(background)
	return c, nil
}

// Close ends it. The last snapshot stays.
func (c *Cache) Close() {
	c.cancel()
	<-c.stopped
}

// Snapshot returns what is known. It asks nobody.
func (c *Cache) Snapshot() *Snapshot { return c.current.Load() }

// Changed returns a channel that is closed once there is a snapshot newer than any that was
// returned before the call.
func (c *Cache) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// Wait returns the first snapshot from now on that satisfies enough.
func (c *Cache) Wait(ctx context.Context, enough func(*Snapshot) bool) (*Snapshot, error) {
	for {
		changed := c.Changed()
		if s := c.Snapshot(); enough(s) {
			return s, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// WaitWritten runs write and waits for what it writes, which may be seen here milliseconds before etcd has answered: write is
// given up then. If it fails before, that is why.
func (c *Cache) WaitWritten(ctx context.Context, enough func(*Snapshot) bool, write func(context.Context) error) (*Snapshot, error) {
	waiting, stop := context.WithCancelCause(ctx)
	var writing sync.WaitGroup
	defer writing.Wait()
	defer stop(nil)
	writing.Go(func() {
		if err := write(waiting); err != nil {
			stop(err)
		}
	})
	s, err := c.Wait(waiting, enough)
	if err != nil {
		return nil, context.Cause(waiting)
	}
	return s, nil
}

// run watches, again and again, from where the last watch ended. Where etcd has compacted that,
// it reads everything anew.
func (c *Cache) run(ctx context.Context) {
	defer close(c.stopped)
	for ctx.Err() == nil {
		err := c.watch(ctx)
		if errors.Is(err, errCompacted) {
			err = c.reread(ctx)
		}
		if err != nil && ctx.Err() == nil {
			c.store.log.Debug("the watch on etcd ended and begins again", "why", err)
			pause(ctx, 100*time.Millisecond)
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (c *Cache) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	from := c.Snapshot().Revision + 1
	for resp := range c.store.client.Watch(ctx, c.store.prefix, clientv3.WithRange(c.store.prefix+books), clientv3.WithRev(from)) {
		if resp.CompactRevision != 0 {
			return errCompacted
		}
		if err := resp.Err(); err != nil {
			return err
		}
		if err := c.apply(resp); err != nil {
			c.store.log.Error("the newest metadata makes no sense and is not used", "why", err)
			pause(ctx, time.Second)
			return err
		}
	}
	return errors.New("the channel was closed")
}

func (c *Cache) apply(resp clientv3.WatchResponse) error {
	old := c.Snapshot()
	raw := maps.Clone(old.raw)
	for _, e := range resp.Events {
		key := strings.TrimPrefix(string(e.Kv.Key), c.store.prefix)
		if e.Type == mvccpb.Event_DELETE {
			delete(raw, key)
		} else {
			raw[key] = e.Kv
		}
	}
	// Who is far behind is told everything in parts, each with etcd's own revision in its header.
	revision := resp.Header.Revision
	if n := len(resp.Events); n > 0 {
		revision = resp.Events[n-1].Kv.ModRevision
	}
	next, err := snapshotOf(raw, revision, old)
	if err != nil {
		return err
	}
	return c.install(next)
}

func (c *Cache) reread(ctx context.Context) error {
	next, err := c.store.Read(ctx)
	if err != nil {
		return err
	}
	return c.install(next)
}

// install makes next the snapshot, if it can follow the one before.
func (c *Cache) install(next *Snapshot) error {
	old := c.Snapshot()
	if next.Revision < old.Revision {
		return fmt.Errorf("etcd went back from revision %d to %d: it was restored from a backup, restart the cluster's nodes", old.Revision, next.Revision)
	}
	if !old.Map.IsZero() {
		if err := view.Validate(old.Map, next.Map); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current.Store(next)
	close(c.changed)
	c.changed = make(chan struct{})
	return nil
}
