package replica

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// Drop makes a roster without the segments, and returns when so many backups have
// stored it that every recovery finds it.
func (p *Primary) Drop(ctx context.Context, ids ...record.SegmentID) error {
	ctx, cancel := p.bound(ctx)
	defer cancel()
	p.end(p.strike(ids)...)
	for {
		news := p.keeper.changes()
		m := p.o.Members()
		err := p.spreadRoster(ctx, m.Living)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("drop %d segments from the log: %w", len(ids), errors.Join(context.Cause(ctx), err))
		case <-m.Changed:
		case <-news:
			rest(ctx, leastPause)
		case <-time.After(firstPause):
		}
	}
}

// strike takes segments out of the books and returns their streams.
func (p *Primary) strike(ids []record.SegmentID) (streams []*stream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ids {
		delete(p.books.closed, id)
		delete(p.books.opening, id)
		if g := (*p.open.Load())[id]; g != nil {
			streams = append(streams, g.drop(func(*stream) bool { return true })...)
			p.unpublish(id)
		}
	}
	return streams
}

// spreadRoster sends a new roster to all backups that live. If fewer store it than each segment has copies, others become backups, and
// it is an error if there are not enough.
func (p *Primary) spreadRoster(ctx context.Context, living []Member) error {
	for {
		stored, err := p.sendRoster(ctx, living)
		p.mu.Lock()
		need := p.books.copies
		p.mu.Unlock()
		if stored >= need {
			return nil
		}
		added, failed := p.addBackups(ctx, living, need-stored)
		if added == 0 {
			return errors.Join(fmt.Errorf("only %d of %d backups have stored the roster", stored, need), err, failed)
		}
	}
}

func (p *Primary) sendRoster(ctx context.Context, living []Member) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, p.o.CallTimeout)
	defer cancel()
	p.mu.Lock()
	request := RosterRequest{Log: p.source.LogID, Roster: p.books.roster(*p.open.Load(), p.water.batch())}
	var nodes []view.NodeID
	for _, m := range living {
		if p.books.backups[m.ID] && m.ID != p.o.Self {
			nodes = append(nodes, m.ID)
		}
	}
	p.mu.Unlock()
	errs := make([]error, len(nodes))
	var stored atomic.Int32
	var all sync.WaitGroup
	for i, n := range nodes {
		all.Go(func() {
			if _, errs[i] = p.call(ctx, n, MethodRoster, request, nil, nil); errs[i] == nil {
				stored.Add(1)
			}
		})
	}
	all.Wait()
	if stored.Load() > 0 {
		p.storedRoster(&request.Roster)
	}
	return int(stored.Load()), errors.Join(errs...)
}

// addBackups makes some more of the living nodes backups, if there are any. A log without segments may have too few to store its roster,
// or those that it has refuse, and no copy would bring others. More of them harm nothing: of what a roster or a segment was stored at
// each recovery still asks one.
func (p *Primary) addBackups(ctx context.Context, living []Member, some int) (added int, err error) {
	for _, m := range append(p.usable(living), p.unheard(living)...) {
		if added == some {
			break
		}
		if p.isBackup(m.ID) || !has(p.o.Members().Living, m.ID) {
			continue // One that has gone would be excluded again.
		}
		if err := p.addBackup(ctx, m.ID); err != nil {
			return added, err
		}
		added++
	}
	return added, nil
}
