package redis

import "golang.org/x/sys/unix"

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
