package cloud_test

import (
	"io"
	"net"
	"sync"
	"testing"
)

// proxy passes connections on to a server and counts the bytes of the requests. It
// shows them to a function once when it has passed on a number of them.
type proxy struct {
	listener net.Listener
	target   string
	group    sync.WaitGroup

	mu      sync.Mutex // guards what follows
	passed  int64
	limit   int64
	reached func([]byte)          // nil once it was called
	conns   map[net.Conn]struct{} // nil once closed
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &proxy{listener: l, target: target, conns: map[net.Conn]struct{}{}}
	p.group.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

// after calls f with the bytes that follow when so many more were passed on.
func (p *proxy) after(bytes int64, f func([]byte)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit, p.reached = p.passed+bytes, f
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil || !p.hold(client, server) {
			_ = client.Close()
			continue
		}
		p.group.Go(func() { p.pass(server, io.TeeReader(client, p)) })
		p.group.Go(func() { p.pass(client, server) })
	}
}

// Write sees what is about to be passed on.
func (p *proxy) Write(b []byte) (int, error) {
	if reached := p.count(int64(len(b))); reached != nil {
		reached(b)
	}
	return len(b), nil
}

// count gives the function that is to be called now, if any.
func (p *proxy) count(bytes int64) (reached func([]byte)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passed += bytes
	if p.reached != nil && p.passed >= p.limit {
		reached, p.reached = p.reached, nil
	}
	return reached
}

// pass copies until either side ends, and then ends the other.
func (p *proxy) pass(to net.Conn, from io.Reader) {
	_, _ = io.Copy(struct{ io.Writer }{to}, from)
	_ = to.Close()
}

func (p *proxy) hold(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.conns == nil {
			_ = c.Close()
			continue
		}
		p.conns[c] = struct{}{}
	}
	return p.conns != nil
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	for c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
	p.mu.Unlock()
	p.group.Wait()
}
