package driver

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/nic"
)

// local is the way to an engine of this process.
type local struct {
	session *nic.Session
	engine  *nic.Engine
	bells   *fabric.Memory // a mapping and an event of our own: the engine may go first
	event   int
}

// Local attaches to an engine of this process.
func Local(e *nic.Engine, name string) (Control, error) {
	s, err := e.Attach(name)
	if err != nil {
		return nil, err
	}
	mem, event := s.Doorbells()
	own, err := fabric.MapFile(mem.File(), 0, len(mem.Bytes()))
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	dup, err := unix.FcntlInt(uintptr(event), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, errors.Join(err, own.Close(), s.Close())
	}
	return &local{s, e, own, dup}, nil
}

func (l *local) Call(r nic.Request, file *os.File) (nic.Response, *fabric.Memory, error) {
	out, mem, err := l.session.Call(r, file)
	if err != nil || mem == nil {
		return out, nil, err
	}
	own, err := fabric.MapFile(mem.File(), 0, len(mem.Bytes()))
	return out, own, err
}

func (l *local) Doorbells() ([]byte, int) { return l.bells.Bytes(), l.event }

func (l *local) Lost() <-chan struct{} { return l.engine.Done() }

func (l *local) Close() error {
	err := l.session.Close()
	if errors.Is(err, fabric.ErrClosed) {
		err = nil // The engine has gone first.
	}
	return errors.Join(err, l.bells.Close(), unix.Close(l.event))
}
