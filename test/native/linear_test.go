// Package native_test watches native clients from outside while their connections die and
// their server starts again: what they were told must have one order.
package native_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostrodb/ostro/client"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/internal/port"
	"github.com/ostrodb/ostro/server/session"
	"github.com/ostrodb/ostro/test/linearize"
)

func TestMain(m *testing.M) { os.Exit(await.RunToEnd(m)) }

// place is a server that can be started again on the same data and port.
type place struct {
	t    *testing.T
	dir  string
	port int

	st     *store.Store
	srv    *session.Server
	served chan struct{} // closed when its port is free
}

func (p *place) start() {
	st, err := store.Open(store.Options{Dir: p.dir, Durability: store.EverySec, SegmentBytes: 1 << 20})
	if err != nil {
		p.t.Fatal(err)
	}
	srv, err := session.New(st, session.Options{})
	if err != nil {
		p.t.Fatal(err)
	}
	l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", p.port))
	if err != nil {
		p.t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = srv.Serve(l) // It ends when the server does.
	}()
	p.st, p.srv, p.served = st, srv, served
}

// stop cuts all sessions where they stand and closes the store without a last word.
func (p *place) stop() {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	_ = p.srv.Shutdown(now) // Sessions were cut: that is what it is for.
	<-p.served
	if err := p.st.CloseUnsaved(); err != nil {
		p.t.Error(err)
	}
}

// mortal is a connection that dies after so many bytes.
type mortal struct {
	net.Conn
	left atomic.Int64
}

var errDied = errors.New("the connection has died")

func (m *mortal) Read(b []byte) (int, error)  { return m.spend(m.Conn.Read, b) }
func (m *mortal) Write(b []byte) (int, error) { return m.spend(m.Conn.Write, b) }

func (m *mortal) spend(f func([]byte) (int, error), b []byte) (int, error) {
	n, err := f(b)
	if m.left.Add(-int64(n)) < 0 && err == nil {
		_ = m.Close()
		err = errDied
	}
	return n, err
}

func TestWhatClientsWereToldHasOneOrderThoughConnectionsAndTheServerDie(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	p := &place{t: t, dir: t.TempDir(), port: port.For(t).Number}
	p.start()
	history := linearize.NewHistory()
	const clients, callers, steps, objects, restarts = 3, 3, 60, 4, 3
	var done sync.WaitGroup
	var progress atomic.Int64
	for n := range clients {
		c := connect(t, p.port, rand.New(rand.NewPCG(seed, uint64(n))))
		var callersDone sync.WaitGroup
		for i := range callers {
			caller := &caller{c: c, r: history.Client(), random: rand.New(rand.NewPCG(seed, uint64(100+n*callers+i))), progress: &progress}
			callersDone.Go(func() { caller.run(t, steps, objects) })
		}
		done.Go(func() {
			callersDone.Wait()
			_ = c.Close()
		})
	}
	for i := range restarts {
		await.True(t, "clients have done their share", func() bool { return progress.Load() >= int64(clients*callers*steps*(i+1)/(restarts+1)) })
		p.stop()
		p.start()
	}
	done.Wait()
	p.stop()
	if err := linearize.Check(history.Ops()); err != nil {
		t.Fatal(err)
	}
}

func connect(t *testing.T, port int, random *rand.Rand) *client.Client {
	var mu sync.Mutex
	options := client.Options{
		SessionTimeout: 2 * time.Second,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			inner, err := new(net.Dialer).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			mu.Lock()
			defer mu.Unlock()
			m := &mortal{Conn: inner}
			m.left.Store(150 + random.Int64N(3000))
			return m, nil
		},
	}
	var c *client.Client
	await.True(t, "a client is connected", func() bool { // For one attempt it has as little time as for silence.
		var err error
		c, err = client.Dial(t.Context(), fmt.Sprint("ostro://127.0.0.1:", port), options)
		return err == nil
	})
	return c
}

// caller does one operation after the other.
type caller struct {
	c        *client.Client
	r        *linearize.Recorder
	random   *rand.Rand
	progress *atomic.Int64
	count    int
}

func (c *caller) run(t *testing.T, steps, objects int) {
	for range steps {
		c.step(t, fmt.Sprint("object", c.random.IntN(objects)))
		c.progress.Add(1)
	}
}

func (c *caller) step(t *testing.T, object string) {
	c.count++
	key, value := []byte(object), fmt.Sprintf("%p.%d", c, c.count)
	op := linearize.Op{Object: object, Put: value}
	var send client.Op
	switch c.random.IntN(6) {
	case 0, 1:
		op.Act, send = linearize.Get, client.Get(0, key)
	case 2:
		op.Act, send = linearize.Set, client.Put(0, key, []byte(value))
	case 3:
		op.Act, send = linearize.Append, client.Append(0, key, []byte("+"))
		op.Put = "+"
	case 4:
		op.Act, send = linearize.Delete, client.Delete(0, key)
	case 5:
		op.Act, op.WantNone, send = linearize.CAS, true, client.Insert(0, key, []byte(value))
	}
	c.r.Call(op)
	r, err := c.c.Do(t.Context(), send)
	switch {
	case errors.Is(err, client.ErrUnknownOutcome):
		c.r.Lost()
	case errors.Is(err, client.ErrUnavailable), op.Act == linearize.CAS && errors.Is(err, client.ErrConflict):
		c.r.Refused()
	case errors.Is(err, client.ErrNotFound):
		c.r.Answered("", false)
	case err != nil:
		t.Errorf("%s: %v", op, err)
		c.r.Lost()
	case op.Act == linearize.Append:
		c.r.Answered(strconv.FormatInt(r.Int(), 10), true)
	default:
		c.r.Answered(string(r.Value), true)
	}
}
