package shm

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"syscall"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/frame"
	"github.com/ostrodb/ostro/fabric/nic"
)

// Server lets the processes of this machine use an engine.
type Server struct {
	*frame.Door
	engine *nic.Engine
	log    *slog.Logger
}

// maxPrograms is how many processes may be attached.
const maxPrograms = 4096

// Serve listens on a socket that only this user can open. A socket that a dead
// server left behind is replaced. Close ends all sessions; their processes
// find the NIC gone.
func Serve(path string, engine *nic.Engine, log *slog.Logger) (*Server, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	l, err := frame.ListenUnix("unixpacket", path)
	if err != nil {
		return nil, fmt.Errorf("shm: %w", err)
	}
	s := &Server{engine: engine, log: log}
	s.Door = frame.OpenDoor(l, maxPrograms, log, func(c net.Conn) { s.serve(c.(*net.UnixConn)) })
	return s, nil
}

// serve is one program's session, from its hello to its end.
func (s *Server) serve(c *net.UnixConn) {
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
