package client

import (
	"sync"
)

// worker is one identity towards all servers: a client id, its sequence numbers, and a session to
// every server that it has met.
type worker struct {
	c    *Client
	id   uint64
	acks acks

	mu       sync.Mutex
	sessions map[string]*session
	closed   bool
}

// session gives the one to an address, and opens it if there is none.
func (w *worker) session(address string) (*session, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, ErrClosed
	}
	s := w.sessions[address]
	if s == nil {
		s = newSession(w, address)
		w.sessions[address] = s
		w.c.stats.sessions.Add(1)
		w.c.running.Go(s.run)
	}
	return s, nil
}

// forget drops a session that has ended.
func (w *worker) forget(s *session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sessions[s.address] == s {
		delete(w.sessions, s.address)
	}
}

func (w *worker) all() []*session {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]*session, 0, len(w.sessions))
	for _, s := range w.sessions {
		all = append(all, s)
	}
	return all
}

func (w *worker) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	for _, s := range w.all() {
		s.fail(ErrClosed)
	}
}
