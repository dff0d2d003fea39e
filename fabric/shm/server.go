package shm

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/nic"
)

// acceptPause is the time until the next try when the system has no room for a
// connection.
const acceptPause = 50 * time.Millisecond

// Server lets the processes of this machine use an engine.
type Server struct {
	engine   *nic.Engine
	listener *net.UnixListener
	log      *slog.Logger
	wait     sync.WaitGroup

	mu     sync.Mutex
	conns  map[*net.UnixConn]struct{}
	closed bool
}

// Serve listens on a socket that only this user can open. A socket that a dead
// server left behind is replaced.
func Serve(path string, engine *nic.Engine, log *slog.Logger) (*Server, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if err := clearStale(path); err != nil {
		return nil, err
	}
	before := unix.Umask(0o177)
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	unix.Umask(before)
	if err != nil {
		return nil, fmt.Errorf("shm: listen on %s: %w", path, err)
	}
	s := &Server{engine: engine, listener: l, log: log, conns: map[*net.UnixConn]struct{}{}}
	s.wait.Go(s.accept)
	return s, nil
}

// clearStale removes a socket nobody listens on.
func clearStale(path string) error {
	st, err := os.Lstat(path)
	if err != nil || st.Mode()&os.ModeSocket == 0 {
		return nil // Listening tells what is wrong with it.
	}
	c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err == nil {
		_ = c.Close()
		return fmt.Errorf("shm: a NIC serves %s already", path)
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return os.Remove(path)
	}
	return nil
}

// Close ends all sessions; their processes find the NIC gone.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	err := s.listener.Close()
	s.wait.Wait()
	return err
}

func (s *Server) accept() {
	for {
		c, err := s.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.log.Error("a program could not attach", "error", err)
			time.Sleep(acceptPause)
			continue
		}
		if s.track(c) {
			s.wait.Go(func() { s.serve(c) })
		}
	}
}

func (s *Server) track(c *net.UnixConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = c.Close()
		return false
	}
	s.conns[c] = struct{}{}
	return true
}

// serve is one program's session, from its hello to its end.
func (s *Server) serve(c *net.UnixConn) {
	defer func() {
		_ = c.Close()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	}()
	session, name, err := s.greet(c)
	if err != nil {
		s.log.Warn("a program could not attach", "error", err)
		_ = send(c, answer{Response: nic.Response{Error: err.Error()}})
		return
	}
	s.log.Info("attached", "device", name)
	for err == nil {
		err = s.one(c, session)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET) {
		err = nil
	}
	_ = session.Close() // Fails only when the engine has gone.
	s.log.Info("detached", "device", name, "error", err)
}

func (s *Server) greet(c *net.UnixConn) (*nic.Session, string, error) {
	var h hello
	files, err := receive(c, &h)
	closeAll(files)
	if err != nil {
		return nil, "", err
	}
	if h.Version != version {
		return nil, "", fmt.Errorf("shm: the program speaks version %d of the control protocol, this NIC version %d: use the same release", h.Version, version)
	}
	session, err := s.engine.Attach(h.Name)
	if err != nil {
		return nil, "", err
	}
	bells, event := session.Doorbells()
	if err := send(c, answer{MemoryBytes: len(bells.Bytes()), Remote: s.engine.Listens()}, int(bells.File().Fd()), event); err != nil {
		_ = session.Close()
		return nil, "", err
	}
	return session, h.Name, nil
}

// one executes a control request. An error of the request is the answer; one of
// the connection ends the session.
func (s *Server) one(c *net.UnixConn, session *nic.Session) error {
	var r nic.Request
	files, err := receive(c, &r)
	defer closeAll(files)
	if err != nil {
		return err
	}
	var file *os.File
	if len(files) > 0 {
		file = files[0]
	}
	out, mem, err := session.Call(r, file)
	if err != nil {
		return send(c, answer{Response: nic.Response{Error: err.Error()}, Code: code(err)})
	}
	if mem == nil {
		return send(c, answer{Response: out})
	}
	return send(c, answer{Response: out, MemoryBytes: len(mem.Bytes())}, int(mem.File().Fd()))
}

// sentinels are the errors that keep their identity on the way.
var sentinels = map[string]error{
	"closed": fabric.ErrClosed, "banned": fabric.ErrBanned, "broken": fabric.ErrBroken, "unsupported": fabric.ErrUnsupported,
}

func code(err error) string {
	for name, sentinel := range sentinels {
		if errors.Is(err, sentinel) {
			return name
		}
	}
	return ""
}
