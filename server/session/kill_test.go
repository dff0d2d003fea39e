package session_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostrodb/ostro/client"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server/session"
	"github.com/ostrodb/ostro/wire"
)

var errCut = errors.New("the test cut the connection")

// cutConn is a connection that dies after so many bytes in either direction; negative: never.
// What was written before reaches the server.
type cutConn struct {
	net.Conn
	mu          sync.Mutex
	write, read int
	sent, got   []byte // all of it, if note is set
	note        bool
}

func (c *cutConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	n := len(b)
	if c.write >= 0 {
		n = min(n, c.write)
		c.write -= n
	}
	if c.note {
		c.sent = append(c.sent, b[:n]...)
	}
	c.mu.Unlock()
	if n > 0 {
		if n, err := c.Conn.Write(b[:n]); err != nil {
			return n, err
		}
	}
	if n < len(b) {
		_ = c.Close()
		return n, errCut
	}
	return n, nil
}

func (c *cutConn) Read(b []byte) (int, error) {
	c.mu.Lock()
	if c.read >= 0 {
		b = b[:min(len(b), c.read)]
	}
	c.mu.Unlock()
	if len(b) == 0 {
		_ = c.Close()
		return 0, errCut
	}
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read >= 0 {
		c.read -= n
	}
	if c.note {
		c.got = append(c.got, b[:n]...)
	}
	return n, err
}

// dialer makes connections that die as plan says; it is told which connection it is.
func dialer(plan func(n int, c *cutConn)) func(context.Context, string, string) (net.Conn, error) {
	var count atomic.Int64
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		inner, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		c := &cutConn{Conn: inner, write: -1, read: -1}
		plan(int(count.Add(1)), c)
		return c, nil
	}
}

// story is a list of writes, each of which would be answered differently if it were executed twice.
func story(key []byte) []step {
	return []step{
		{op: client.Add(0, append(key, 'n'), 1), value: string(number(1))},
		{op: client.Add(0, append(key, 'n'), 1), value: string(number(2))},
		{op: client.Append(0, key, []byte("ab")), value: string(number(2))},
		{op: client.Append(0, key, []byte("c")), value: string(number(3))},
		{op: client.Swap(0, key, []byte("abc"), []byte("d"))},
		{op: client.Insert(0, key, []byte("e")), err: client.ErrConflict, value: "d"},
		{op: client.Get(0, key), value: "d"},
		{op: client.Delete(0, key)},
		{op: client.Insert(0, key, []byte("f"))},
		{op: client.Get(0, key), value: "f"},
	}
}

// borders lists the ends of all frames in a stream, and a place inside of each.
func borders(t *testing.T, stream []byte) (cuts []int) {
	at := 0
	if bytes.HasPrefix(stream, []byte(wire.Magic)) {
		at = len(wire.Magic)
		cuts = append(cuts, 0, 3, at)
	}
	for at < len(stream) {
		_, _, n, _, err := wire.Next(stream[at:], wire.MaxFrameBytes)
		if err != nil || n == 0 {
			t.Fatalf("the stream makes no sense at %d of %d: %v", at, len(stream), err)
		}
		cuts = append(cuts, at+n/2, at+n)
		at += n
	}
	return cuts
}

func TestAConnectionMayDieAtEveryBorderOfAFrame(t *testing.T) {
	_, addr := serve(t, openStore(t, store.Options{}), session.Options{})
	// The second connection is the session; the first has only asked for the map.
	var noted *cutConn
	c, err := client.Dial(t.Context(), "ostro://"+addr, client.Options{SessionTimeout: time.Minute, Dial: dialer(func(n int, c *cutConn) {
		if n == 2 {
			noted, c.note = c, true
		}
	})})
	if err != nil {
		t.Fatal(err)
	}
	run(t, c, story([]byte("whole")))
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	cut := func(name string, dies bool, plan func(c *cutConn)) {
		t.Run(name, func(t *testing.T) {
			var connections atomic.Int64
			c, err := client.Dial(t.Context(), "ostro://"+addr, client.Options{SessionTimeout: time.Minute, Dial: dialer(func(n int, c *cutConn) {
				if n == 2 {
					plan(c)
				}
				connections.Add(1)
			})})
			if err != nil {
				t.Fatal(err)
			}
			run(t, c, story([]byte(name)))
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			if again := connections.Load() > 2; dies && !again {
				t.Fatal("the session was not cut")
			}
		})
	}
	for _, at := range borders(t, noted.sent) {
		cut(fmt.Sprint("sent ", at), at < len(noted.sent), func(c *cutConn) { c.write = at })
	}
	for _, at := range borders(t, noted.got) {
		cut(fmt.Sprint("received ", at), at < len(noted.got), func(c *cutConn) { c.read = at })
	}
}

func TestARetryStormOfCountersSumsUpExactly(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for _, d := range []store.Durability{store.None, store.EverySec} {
		t.Run(d.String(), func(t *testing.T) {
			so := store.Options{Durability: d, SegmentBytes: 1 << 20}
			if d != store.None {
				so.Dir = t.TempDir()
			}
			srv, addr := serve(t, openStore(t, so), session.Options{})
			var mu sync.Mutex
			random := rand.New(rand.NewPCG(seed, 1))
			const clients, callers, adds, counters = 3, 8, 40, 5
			var sums [counters]atomic.Int64
			var all sync.WaitGroup
			for range clients {
				c := dial(t, "ostro://"+addr, client.Options{Workers: 2, Dial: dialer(func(n int, c *cutConn) {
					mu.Lock()
					defer mu.Unlock()
					if n == 1 {
						return
					}
					// Long enough for a hello, and some batches.
					switch random.IntN(3) {
					case 0:
						c.write = 40 + random.IntN(1500)
					case 1:
						c.read = 60 + random.IntN(1500)
					default:
						c.write, c.read = 40+random.IntN(3000), 60+random.IntN(3000)
					}
				})})
				for i := range callers {
					all.Go(func() {
						for j := range adds {
							n := (i + j) % counters
							if _, err := c.Do(t.Context(), client.Add(0, fmt.Append(nil, "counter", n), int64(j+1))); err != nil {
								t.Error(err)
								return
							}
							sums[n].Add(int64(j + 1))
						}
					})
				}
			}
			all.Wait()
			c := dial(t, "ostro://"+addr, client.Options{})
			for n := range sums {
				r, err := c.Do(t.Context(), client.Get(0, fmt.Append(nil, "counter", n)))
				if err != nil || r.Int() != sums[n].Load() {
					t.Errorf("counter %d is %d, want %d, %v", n, r.Int(), sums[n].Load(), err)
				}
			}
			if m := srv.Metrics(); m.Repeated == 0 {
				t.Fatalf("no operation was ever sent twice: %+v", m)
			} else {
				t.Logf("%+v", m)
			}
		})
	}
}

func TestAWriteWithoutAnIdentityIsNotTriedAgain(t *testing.T) {
	_, addr := serve(t, openStore(t, store.Options{}), session.Options{})
	c := dial(t, "ostro://"+addr, client.Options{Unrecorded: true, Dial: dialer(func(n int, c *cutConn) {
		if n == 2 {
			c.read = 1 + len(wire.AppendMap(wire.AppendWelcome(nil, &wire.Welcome{}), session.Alone().Routing().Map)) // and the answer's first byte
		}
	})})
	if _, err := c.Do(t.Context(), client.Add(0, []byte("n"), 1)); !errors.Is(err, client.ErrUnknownOutcome) {
		t.Fatal(err)
	}
	run(t, c, []step{{op: client.Add(0, []byte("n"), 0), value: string(number(1))}})
}
