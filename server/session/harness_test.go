package session_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/ostrodb/ostro/client"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server/session"
)

// openStore opens a store that the test's end closes.
func openStore(t testing.TB, o store.Options) *store.Store {
	t.Helper()
	st, err := store.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

// serve serves a store on a port of its own until the test's end.
func serve(t testing.TB, st *store.Store, o session.Options) (*session.Server, string) {
	t.Helper()
	s, err := session.New(st, o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		stop(t, s)
		if err := <-ended; !errors.Is(err, session.ErrStopped) {
			t.Error(err)
		}
	})
	return s, l.Addr().String()
}

func stop(t testing.TB, s *session.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}

// dial connects a client until the test's end. One whose hello the machine was too slow for tries again. Writes without
// an identity do not: such a client does not take the server for gone so soon.
func dial(t testing.TB, url string, o client.Options) *client.Client {
	t.Helper()
	if o.Unrecorded && o.SessionTimeout == 0 {
		o.SessionTimeout = time.Minute
	}
	c, err := client.Dial(t.Context(), url, o)
	for tries := 1; tries < 20 && isLate(err); tries++ {
		c, err = client.Dial(t.Context(), url, o)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func isLate(err error) bool {
	var late net.Error
	return errors.As(err, &late) && late.Timeout()
}

// alone is a store, a server and a client of it.
func alone(t testing.TB, so store.Options, o client.Options) *client.Client {
	t.Helper()
	_, addr := serve(t, openStore(t, so), session.Options{})
	return dial(t, "ostro://"+addr, o)
}
