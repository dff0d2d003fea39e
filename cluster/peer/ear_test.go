package peer

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// wire is both ends of a TCP connection, and an ear at the first that is awake.
func wire(t *testing.T) (e *ear, there net.Conn) {
	t.Helper()
	Listen(1)
	t.Cleanup(func() { Listen(0) })
	here, there := twoEnds(t)
	e = awakeAt(here)
	if e.raw == nil {
		t.Fatal("nobody can listen to a TCP connection")
	}
	return e, there
}

func TestAnEarHearsWhatIsThereWhatComesSoonAndWhatComesLate(t *testing.T) {
	e, there := wire(t)
	for _, after := range []time.Duration{-1, time.Millisecond, 3 * listenMillis * time.Millisecond} {
		said := make(chan error, 1)
		say := func() {
			time.Sleep(after)
			_, err := there.Write([]byte("word"))
			said <- err
		}
		if after < 0 {
			say()
		} else {
			go say()
		}
		b := make([]byte, 4)
		if _, err := io.ReadFull(e, b); err != nil || string(b) != "word" {
			t.Fatalf("after %v: got %q, %v", after, b, err)
		}
		if err := <-said; err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnEarThatHearsNothingMoreSaysWhy(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(e *ear, there net.Conn) error
		want error
	}{
		"the other end closed": {func(_ *ear, there net.Conn) error { return there.Close() }, io.EOF},
		"the other end broke it off": {func(_ *ear, there net.Conn) error {
			return errors.Join(there.(*net.TCPConn).SetLinger(0), there.Close())
		}, nil},
		"the time is over":    {func(e *ear, _ net.Conn) error { return e.c.SetReadDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded},
		"this end was closed": {func(e *ear, _ net.Conn) error { return e.c.Close() }, net.ErrClosed},
		"this end is closed meanwhile": {func(e *ear, _ net.Conn) error {
			time.AfterFunc(listenMillis*time.Millisecond/4, func() { _ = e.c.Close() })
			return nil
		}, net.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			e, there := wire(t)
			if err := test.end(e, there); err != nil {
				t.Fatal(err)
			}
			_, err := e.Read(make([]byte, 4))
			if err == nil || test.want != nil && !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

func TestFewListenAtATimeAndTheOthersHear(t *testing.T) {
	e, there := wire(t)
	listeners.Add(1)
	defer listeners.Add(-1)
	_ = e.raw.Control(func(fd uintptr) {
		if listen(int32(fd)) {
			t.Error("one more than may listen did")
		}
	})
	go func() { _, _ = there.Write([]byte("word")) }()
	if _, err := io.ReadFull(e, make([]byte, 4)); err != nil {
		t.Error(err)
	}
}
