package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ostrodb/ostro/wire"
)

// learn takes a map if it is newer than what is known.
func (c *Client) learn(r *routes) {
	for {
		known := c.routes.Load()
		if !r.newer(known) {
			return
		}
		if c.routes.CompareAndSwap(known, r) {
			break
		}
	}
	c.stats.refreshes.Add(1)
	for _, w := range c.workers {
		for _, s := range w.all() {
			s.mu.Lock()
			moved := s.adopt(r)
			s.mu.Unlock()
			c.elsewhere(moved)
		}
	}
}

// wantMap asks for a newer map, from whoever has one.
func (c *Client) wantMap() {
	select {
	case c.ask <- struct{}{}:
	default:
	}
}

// refreshPause is the least time between two searches for a newer map.
const refreshPause = 50 * time.Millisecond

// refresher looks for newer maps when they are asked for.
func (c *Client) refresher() {
	for {
		select {
		case <-c.ask:
		case <-c.ctx.Done():
			return
		}
		c.search()
		select {
		case <-time.After(refreshPause):
		case <-c.ctx.Done():
			return
		}
	}
}

// search asks all servers, known ones and seeds, at once, and waits until one knows more than we
// do or none is left. Those that hang are not asked twice, and nobody waits for them longer.
func (c *Client) search() {
	known := c.routes.Load()
	answers := make(chan struct{}, len(known.Nodes)+len(c.seeds))
	asked := 0
	for _, n := range known.Nodes {
		asked += c.askOnce(n.Address, answers)
	}
	for _, seed := range c.seeds {
		asked += c.askOnce(seed, answers)
	}
	for ; asked > 0 && c.routes.Load() == known; asked-- {
		select {
		case <-answers:
		case <-time.After(refreshPause):
			return
		case <-c.ctx.Done():
			return
		}
	}
}

// askOnce asks one server for its map, unless it is being asked; it returns how many it asked.
func (c *Client) askOnce(address string, answers chan<- struct{}) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.asking[address] {
		return 0
	}
	c.asking[address] = true
	c.running.Go(func() {
		g, err := c.open(c.ctx, address, c.workers[0].id)
		if err == nil {
			_ = g.conn.Close()
			c.learn(g.routes)
		}
		c.mu.Lock()
		delete(c.asking, address)
		c.mu.Unlock()
		answers <- struct{}{}
	})
	return 1
}

// firstMap asks the seeds, one after the other.
func (c *Client) firstMap(ctx context.Context) error {
	var failures error
	for _, seed := range c.seeds {
		g, err := c.open(ctx, seed, c.workers[0].id)
		if err != nil {
			failures = errors.Join(failures, err)
			if ctx.Err() != nil {
				break
			}
			continue
		}
		_ = g.conn.Close()
		c.learn(g.routes)
		return nil
	}
	return fmt.Errorf("find a server: %w", failures)
}

// watch looks after sessions whose server owes answers and is silent.
func (c *Client) watch() {
	tick := time.NewTicker(max(min(c.opts.SessionTimeout/8, c.opts.Retry/4, 250*time.Millisecond), time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-c.ctx.Done():
			return
		}
		for _, w := range c.workers {
			for _, s := range w.all() {
				s.check(time.Now())
			}
		}
	}
}

var errSilent = errors.New("the server is silent")

// check asks a silent server whether it is there, gives a dead one up, and ends calls
// that were tried for too long.
func (s *session) check(now time.Time) {
	s.mu.Lock()
	if s.conn == nil || s.over != nil || len(s.batches) == 0 {
		s.mu.Unlock()
		return
	}
	silent := now.Sub(time.Unix(0, s.heard.Load()))
	timeout := s.c.opts.SessionTimeout
	if silent > timeout || silent > timeout/3 && s.deposed() {
		s.mu.Unlock()
		s.fail(errSilent)
		return
	}
	if silent > timeout/3 {
		s.c.wantMap() // Perhaps others know why.
		if !s.probing {
			s.probe()
		}
	}
	late := s.takeLate()
	s.mu.Unlock()
	for _, cl := range late {
		cl.lost, cl.cause = true, errSilent
		s.c.again(cl, errLate)
	}
}

// deposed tells whether the server's view has changed since it was sent what it owes: it would
// reject that by now, if it were there to do so.
func (s *session) deposed() bool {
	now := s.routes.viewAt(s.address)
	for _, b := range s.batches {
		if b.view != now {
			return true
		}
	}
	return false
}

var errLate = errors.New("the server has not answered")

// probe sends a ping, whose answer will be heard.
func (s *session) probe() {
	s.probing = true
	ping := &call{op: wire.Op{Code: wire.OpPing}, w: s.w, pinned: true, began: time.Now()}
	ping.finish = func(*wire.Result, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.probing = false
	}
	s.queue = append(s.queue, ping)
	s.queued += ping.bytes()
	s.lingered = true
	s.kick()
}

// takeLate takes calls out of their slots that were tried for longer than they may be. Their
// answers, should they come, are dropped.
func (s *session) takeLate() (late []*call) {
	now := s.c.opts.now()
	for _, b := range s.batches {
		if now-b.sent < s.c.patienceOnce() {
			continue
		}
		for _, cl := range b.calls {
			if cl != nil && s.c.age(cl) > s.c.patience(cl) {
				s.slots[cl.op.Tag] = orphan
				s.settle(cl)
				late = append(late, cl)
			}
		}
	}
	return late
}
