package redis

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	acceptAtOnce = 64
)

// protectedText is what Redis answers to strangers in protected mode.
const protectedText = "-DENIED Redis is running in protected mode because protected mode is enabled and no password is set for the default user. In this mode connections are only accepted from the loopback interface. If you want to connect from external computers to Redis you may adopt one of the following solutions: 1) Just disable protected mode sending the command 'CONFIG SET protected-mode no' from the loopback interface by connecting to Redis from the same host the server is running, however MAKE SURE Redis is not publicly accessible from internet if you do so. Use CONFIG REWRITE to make this change permanent. 2) Alternatively you can just disable the protected mode by editing the Redis configuration file, and setting the protected mode option to 'no', and then restarting the server. 3) If you started the server manually just for testing, restart it with the '--protected-mode no' option. 4) Setup a an authentication password for the default user. NOTE: You only need to do one of the above things in order for the server to start accepting connections from the outside.\r\n"

// listener is a socket that the first loop accepts from.
type listener struct {
	fd   int
	addr net.Addr
	path string // of a unix socket, to be removed
}

// listenAll opens the plain sockets.
func (s *Server) listenAll() error {
	if s.cfg.Port != -1 {
		if err := s.listenTCP(); err != nil {
			return err
		}
	}
	if s.cfg.UnixSocket != "" {
		ln, err := listenUnix(s.cfg.UnixSocket, s.cfg.UnixSocketPerm)
		if err != nil {
			return err
		}
		s.listeners = append(s.listeners, ln)
	}
	return nil
}

// listenTCP opens a socket per bind address.
func (s *Server) listenTCP() error {
	bound, err := listenOnBinds(s.cfg.Binds, s.cfg.Port)
	for _, ln := range bound {
		taken, takeErr := takeListener(ln, ln.(*net.TCPListener).File)
		if takeErr == nil {
			s.listeners = append(s.listeners, taken)
		}
		err = errors.Join(err, takeErr, ln.Close())
	}
	return err
}

// anyPortTries bounds the search for a port that is free on every address.
const anyPortTries = 100

// listenOnBinds listens on one port of every bind address. PortAny is one that
// is free on all of them.
func listenOnBinds(binds []string, port int) (bound []net.Listener, err error) {
	if len(binds) == 0 {
		binds = []string{"127.0.0.1", "-::1"}
	}
	for range anyPortTries {
		bound, err = listenOnEach(binds, max(port, 0))
		if port != PortAny || !errors.Is(err, unix.EADDRINUSE) {
			break
		}
	}
	return bound, err
}

// listenOnEach listens on all addresses or on none. One that begins with "-" may
// be missing on this machine. Port 0 is what the system gives the first of them.
func listenOnEach(binds []string, port int) (bound []net.Listener, err error) {
	for _, bind := range binds {
		host, optional := strings.CutPrefix(bind, "-")
		if host == "*" {
			host = ""
		}
		addr := net.JoinHostPort(host, strconv.Itoa(port))
		ln, err := net.Listen("tcp", addr)
		switch {
		case err == nil:
			bound = append(bound, ln)
			port = ln.Addr().(*net.TCPAddr).Port
		case optional && addressMissing(err):
		default:
			for _, ln := range bound {
				_ = ln.Close()
			}
			return nil, fmt.Errorf("listening on %s: %w", addr, err)
		}
	}
	return bound, nil
}

func addressMissing(err error) bool {
	return errors.Is(err, unix.EADDRNOTAVAIL) || errors.Is(err, unix.EAFNOSUPPORT)
}

func listenUnix(path string, perm uint32) (*listener, error) {
	if err := removeStaleSocket(path); err != nil {
		return nil, err
	}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", path, err)
	}
	ln.SetUnlinkOnClose(false)
	defer ln.Close()
	if err := os.Chmod(path, os.FileMode(perm)); err != nil {
		return nil, fmt.Errorf("setting permissions of %s: %w", path, err)
	}
	l, err := takeListener(ln, ln.File)
	if err == nil {
		l.path = path
	}
	return l, err
}

// removeStaleSocket removes a socket that an earlier server left behind.
func removeStaleSocket(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&os.ModeSocket == 0:
		return fmt.Errorf("unixsocket %s exists and is not a socket: choose another path", path)
	}
	return os.Remove(path)
}

// takeListener takes the socket out of the Go runtime's hands.
func takeListener(ln net.Listener, file func() (*os.File, error)) (*listener, error) {
	f, err := file()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return &listener{fd: fd, addr: ln.Addr()}, nil
}

// listenTo makes the loop accept from sockets, which are its own from now on.
func (l *loop) listenTo(listeners []*listener) {
	l.listen = listeners
	for _, ln := range listeners {
		if err := l.poller.add(ln.fd, readable); err != nil {
			l.srv.log.Error("epoll refused a listening socket", "address", ln.addr.String(), "error", err)
		}
	}
}

func (l *loop) closeListeners() {
	for _, ln := range l.listen {
		ln.close()
	}
	l.listen = nil
}

func (ln *listener) close() {
	_ = unix.Close(ln.fd)
	if ln.path != "" {
		_ = os.Remove(ln.path)
	}
}

// accept takes new connections.
func (l *loop) accept(ln *listener) {
	for range acceptAtOnce {
		fd, peer, err := unix.Accept4(ln.fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		switch {
		case err == unix.ECONNABORTED || err == unix.EINTR:
			continue
		case err != nil:
			l.acceptFailed(ln, err)
			return
		}
		c := &conn{srv: l.srv, fd: fd}
		if ln.path != "" {
			c.unix = true
			c.addr, c.laddr = ln.path+":0", ln.path+":0"
		} else {
			c.addr, c.laddr = formatPeer(peer), localAddr(fd)
			l.srv.tuneSocket(fd)
		}
		switch {
		case !l.srv.welcome(c, isLocal(peer)):
			c.hangUp()
		case l.srv.pick() == l:
			l.adopt(c)
		default:
			l.srv.place(c)
		}
	}
}

// acceptFailed stops accepting for a moment. The usual reason, too many open
// files, lasts, and the listening socket would keep the loop busy for nothing.
func (l *loop) acceptFailed(ln *listener, err error) {
	if err == unix.EAGAIN {
		return
	}
	_ = l.poller.modify(ln.fd, 0) // or it is reported again at once
	if l.acceptAgain == 0 {
		l.srv.log.Error("accepting a connection failed; raise the limit of open files if it is too low", "error", err)
	}
	l.acceptAgain = l.now + sweepMillis
}

// acceptResumed listens again after a failure.
func (l *loop) acceptResumed() {
	l.acceptAgain = 0
	for _, ln := range l.listen {
		_ = l.poller.modify(ln.fd, readable) // A closed listener is gone anyway.
	}
}

// welcome registers a new client, or tells it why it may not come in.
func (s *Server) welcome(c *conn, local bool) bool {
	s.totals.connectionsAccepted.Add(1)
	now := time.Now().UnixMilli()
	c.created = now
	c.lastSeen.Store(now)
	c.shownMulti.Store(-1)
	c.shownProto.Store(2)
	c.authenticated = !s.authRequired()
	c.databases = s.cfg.Databases
	refusal := ""
	switch {
	case s.settings.protectedMode.Load() && !s.authRequired() && !local:
		refusal = protectedText
	case !s.clients.add(c, s.settings.maxClients.Load()):
		refusal = "-ERR max number of clients reached\r\n"
	default:
		return true
	}
	s.totals.connectionsRejected.Add(1)
	_, _ = c.send([]byte(refusal)) // It need not listen.
	return false
}

// pick is the active loop with the fewest connections.
func (s *Server) pick() *loop {
	loops := s.startedLoops()[:s.active.Load()]
	best := loops[0]
	for _, l := range loops[1:] {
		if l.num.Load() < best.num.Load() {
			best = l
		}
	}
	return best
}

// place gives a new connection to a loop.
func (s *Server) place(c *conn) {
	l := s.pick()
	c.loop.Store(l)
	if !l.post(message{adopt: c}) {
		s.clients.remove(c)
		c.hangUp()
	}
}

func (s *Server) tuneSocket(fd int) {
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	secs := int(s.settings.keepAliveSecs.Load())
	if secs <= 0 {
		return
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, secs)
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, max(secs/3, 1))
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 3)
}

func formatPeer(sa unix.Sockaddr) string { return addrPort(sa).String() }

func localAddr(fd int) string {
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return ""
	}
	return formatPeer(sa)
}

func isLocal(sa unix.Sockaddr) bool {
	if _, ok := sa.(*unix.SockaddrUnix); ok {
		return true
	}
	return addrPort(sa).Addr().IsLoopback()
}

func addrPort(sa unix.Sockaddr) netip.AddrPort {
	switch a := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr).Unmap(), uint16(a.Port))
	}
	return netip.AddrPort{}
}
