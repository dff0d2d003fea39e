package bench

import (
	"context"
	"net"
	"strconv"
	"strings"

	"github.com/ostrodb/ostro/internal/port"
)

// loneServer is a server on its own with a native port.
type loneServer struct {
	*target
	native string
	admin  string
}

// startAlone starts a server with a native and an admin port.
func (f serverFlags) startAlone(ctx context.Context, args ...string) (*loneServer, error) {
	return f.startAloneIn(ctx, "", args...)
}

// startAloneIn does so with a directory that outlives it.
func (f serverFlags) startAloneIn(ctx context.Context, dir string, args ...string) (*loneServer, error) {
	native, err := port.Reserve()
	if err != nil {
		return nil, err
	}
	defer native.Release()
	admin, err := port.Reserve()
	if err != nil {
		return nil, err
	}
	defer admin.Release()
	args = append([]string{"--native-port", strconv.Itoa(native.Number), "--admin-addr", admin.Addr()}, args...)
	l, err := f.ostro(append(args, strings.Fields(f.ostroArgs)...))
	if err != nil {
		return nil, err
	}
	l.dir = dir
	t, err := l.start(ctx)
	if err != nil {
		return nil, err
	}
	s := &loneServer{t, native.Addr(), admin.Addr()}
	if err := poll(ctx, "the native port does not open", s.opened); err != nil {
		t.stop()
		return nil, err
	}
	return s, nil
}

func (s *loneServer) opened() error {
	c, err := net.Dial("tcp", s.native)
	if err != nil {
		return err
	}
	return c.Close()
}
