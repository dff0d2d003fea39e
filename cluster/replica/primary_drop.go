package replica

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// spreadRoster sends a new roster to all backups that live. It is an error if fewer
// store it than each segment has copies.
func (p *Primary) spreadRoster(ctx context.Context, living []Member) error {
	p.mu.Lock()
	need := p.books.copies
	p.mu.Unlock()
	if err := p.addBackups(ctx, living, need); err != nil {
		return err
	}
	stored, err := p.sendRoster(ctx, living)
	if stored < need {
		return errors.Join(fmt.Errorf("only %d of %d backups have stored the roster", stored, need), err)
	}
	return nil
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

// addBackups sees that there are as many living backups as have to store a roster, if so many live: a log that has no segments may
// have fewer, and no copy would bring more.
func (p *Primary) addBackups(ctx context.Context, living []Member, need int) error {
	isBackup := func(m Member) bool { return p.isBackup(m.ID) }
	for _, m := range living {
		if isBackup(m) && m.ID != p.o.Self {
			need--
		}
	}
	others := slices.DeleteFunc(append(p.usable(living), p.unheard(living)...), isBackup)
	for _, m := range others[:min(max(need, 0), len(others))] {
		if err := p.addBackup(ctx, m.ID); err != nil {
			return err
		}
	}
	return nil
}
