package redis

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/cluster/view"
)

// ShuffleConnections moves connections from every loop to the next one.
func (s *Server) ShuffleConnections() {
	loops := s.startedLoops()
	for i, l := range loops {
		to := loops[(i+1)%len(loops)]
		l.post(message{run: func() { l.moveTo(to, 1+len(l.conns)/2) }})
	}
}

// HeldBuffers counts buffers that connections hold, as seen by their loops.
func (s *Server) HeldBuffers() int {
	counts := make(chan int)
	loops := s.startedLoops()
	for _, l := range loops {
		l.post(message{run: func() {
			n := 0
			for _, c := range l.conns {
				if c.net.in != nil || c.out.Cap() > 0 {
					n++
				}
			}
			counts <- n
		}})
	}
	sum := 0
	for range loops {
		sum += <-counts
	}
	return sum
}

// WelcomeStranger is what a client from elsewhere gets to read, "" if it may
// come in.
func (s *Server) WelcomeStranger(local bool) string {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		panic(err)
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	c := &conn{srv: s, fd: fds[0]}
	if s.welcome(c, local) {
		s.clients.remove(c)
		return ""
	}
	b := make([]byte, 4096)
	n, _ := unix.Read(fds[1], b)
	return string(b[:n])
}

// LingerTLS has TLS clients whose loops have closed leave after so long.
func (s *Server) LingerTLS(d time.Duration) { s.tls.linger.Store(int64(d)) }

// OpenTLS is how many TLS connections there are, clients of loops or not.
func (s *Server) OpenTLS() int {
	s.tls.mu.Lock()
	defer s.tls.mu.Unlock()
	return len(s.tls.open)
}

// Wake has a loop look around.
func (s *Server) Wake(id int) { s.startedLoops()[id].poller.wake() }

// PauseClients and UnpauseClients are CLIENT PAUSE, for a day, and CLIENT UNPAUSE.
func (s *Server) PauseClients() { s.pauseClients(time.Now().Add(24*time.Hour).UnixMilli(), true) }

func (s *Server) UnpauseClients() { s.unpauseClients() }

// Paused is how many connections of a loop wait for the end of a pause.
func (s *Server) Paused(id int) (n int) {
	s.onLoop(id, func(l *loop) { n = len(l.pause.conns) })
	return n
}

// onLoop runs f on a loop's goroutine and waits for it.
func (s *Server) onLoop(id int, f func(l *loop)) {
	done := make(chan struct{})
	l := s.startedLoops()[id]
	l.post(message{run: func() { f(l); close(done) }})
	<-done
}

// Fetching is how many fetches of a loop are under way.
func (s *Server) Fetching(id int) (n int) {
	s.onLoop(id, func(l *loop) { n = l.fetching })
	return n
}

// HoldLoop stops a loop until release is called.
func (s *Server) HoldLoop(id int) (release func()) {
	held, done := make(chan struct{}), make(chan struct{})
	s.startedLoops()[id].post(message{run: func() { close(held); <-done }})
	<-held
	return func() { close(done) }
}

// PassAll returns when every loop has ended the round that it was in.
func (s *Server) PassAll() {
	for i := range s.startedLoops() {
		s.onLoop(i, func(*loop) {})
	}
}

// LeaseBelieved makes a loop, which is held, believe that it asked for the lease in a
// while from now, so that its next rounds begin without asking.
func (s *Server) LeaseBelieved(id int) {
	s.startedLoops()[id].lease = leaseView{alive: true, asked: never}
}

// Posted is how many messages wait for a loop.
func (s *Server) Posted(id int) int {
	in := &s.startedLoops()[id].inbox
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.messages)
}

// PretendLoad makes the first loop believe that it was busy for a share of
// enough windows to react, with so many idle cores.
func (s *Server) PretendLoad(share, idle float64) { s.pretendLoad(share, idle, false) }

func (s *Server) pretendLoad(share, idle float64, heavy bool) {
	s.onLoop(0, func(l *loop) {
		l.balancer.rest, l.balancer.heavy = 0, heavy
		l.balancer.idle.measure = func() float64 { return idle }
		for range hotWindows {
			l.balance(share)
		}
	})
}

// PretendHeavyLoad is PretendLoad by commands that take long.
func (s *Server) PretendHeavyLoad(share, idle float64) { s.pretendLoad(share, idle, true) }

// PretendCalm makes the first loop believe that there was little to do for
// long enough to react.
func (s *Server) PretendCalm() {
	s.onLoop(0, func(l *loop) {
		l.balancer.rest = 0
		for _, o := range s.startedLoops() {
			o.load.last.Store(0)
		}
		for range coolWindows {
			l.balance(0)
		}
	})
}

// AllowLoops sets how many loops the server may use.
func (s *Server) AllowLoops(n int) {
	s.loopsMu.Lock()
	defer s.loopsMu.Unlock()
	s.maxLoops = n
}

// Flying counts connections whose commands other nodes execute.
func (s *Server) Flying() int {
	var n atomic.Int64
	for i := range s.startedLoops() {
		s.onLoop(i, func(l *loop) {
			for _, c := range l.conns {
				if c.net.flying {
					n.Add(1)
				}
			}
		})
	}
	return int(n.Load())
}

// AllSent tells whether links hold nothing back that clients sent.
func (s *Server) AllSent() bool {
	var kept atomic.Int64
	for i := range s.startedLoops() {
		s.onLoop(i, func(l *loop) {
			for k := range l.allLinks {
				k.mu.Lock()
				kept.Add(k.queued - k.started)
				k.mu.Unlock()
			}
		})
	}
	return kept.Load() == 0
}

// LinksTo counts links to a node.
func (s *Server) LinksTo(id view.NodeID) int {
	var n atomic.Int64
	for i := range s.startedLoops() {
		s.onLoop(i, func(l *loop) {
			for k := range l.allLinks {
				if k.to.ID == id {
					n.Add(1)
				}
			}
		})
	}
	return int(n.Load())
}

// AgeLinks has links believe that nobody used them for so many milliseconds more.
func (s *Server) AgeLinks(millis int64) {
	for i := range s.startedLoops() {
		s.onLoop(i, func(l *loop) {
			for k := range l.allLinks {
				k.used -= millis
			}
		})
	}
}

// OddWords are arguments that options and numbers are made of.
var OddWords = oddWords

// CommandNames lists all commands, and "container|name" of subcommands.
func CommandNames() (names []string) {
	for _, c := range commandList {
		if c.subs == nil {
			names = append(names, c.name)
		}
		for _, sub := range c.subs {
			names = append(names, sub.name)
		}
	}
	return names
}

// WatchCalls has the first loop tell, round after round, how much fuel calls have used there so far, until tell says no.
func (s *Server) WatchCalls(tell func(fuel int64) bool) {
	l := s.startedLoops()[0]
	var look func()
	look = func() {
		if tell(l.call.caller.Used()) {
			l.post(message{run: look})
		}
	}
	l.post(message{run: look})
}
