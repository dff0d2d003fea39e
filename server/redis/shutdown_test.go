package redis_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostrodb/ostro/engine/hlog/hlogtest"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/server/redis"
)

func stopServer(t testing.TB, srv *redis.Server, st *store.Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := srv.Shutdown(ctx); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if err := st.Close(); err != nil {
		t.Errorf("closing the store: %v", err)
	}
}

func TestShutdownAnswersWhatHasArrivedAndCutsNoReply(t *testing.T) {
	srv, st := launch(t, store.Options{}, redis.Config{})
	var clients sync.WaitGroup
	busy := make(chan struct{}, 10)
	for i := range 10 {
		c := dial(t, "tcp", srv.Addr().String())
		clients.Go(func() { pipelineUntilClosed(t, c, fmt.Sprint("k", i), busy) })
	}
	for range 10 {
		<-busy
	}
	stopServer(t, srv, st)
	clients.Wait()
	if _, err := net.Dial("tcp", srv.Addr().String()); err == nil {
		t.Fatal("the port is still open")
	}
}

// pipelineUntilClosed sends INCRs until the server closes, and checks that the
// replies are 1, 2, 3 ... up to a whole one.
func pipelineUntilClosed(t *testing.T, c net.Conn, key string, busy chan<- struct{}) {
	var writer sync.WaitGroup
	writer.Go(func() {
		for {
			if _, err := io.WriteString(c, strings.Repeat(bulk("INCR", key), 10)); err != nil {
				return
			}
		}
	})
	client := &rawClient{conn: c, in: bufio.NewReader(c)}
	n := 0
	for {
		r, err := client.receive()
		if err != nil {
			break
		}
		if n++; r.raw != fmt.Sprintf(":%d\r\n", n) {
			t.Errorf("reply %d is %q", n, r.raw)
			break
		}
		if n == 100 {
			busy <- struct{}{}
		}
	}
	_ = c.Close() // ends the writer
	writer.Wait()
}

func TestShutdownDoesNotWaitForeverForAClientThatReadsNothing(t *testing.T) {
	srv, st := launch(t, store.Options{}, redis.Config{})
	c := dial(t, "tcp", srv.Addr().String())
	sendTo(t, c, bulk("SET", "k", strings.Repeat("x", 1<<20)))
	expect(t, c, "+OK\r\n")
	sendTo(t, c, strings.Repeat(bulk("GET", "k"), 50))
	await.True(t, "all is executed", func() bool { return srv.Metrics().Commands == 51 })
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := srv.Shutdown(ctx); err == nil {
		t.Fatal("50 MB went to a client that does not read")
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

// Of all nodes of a cluster that are stopped one after the other the last has nobody who could open segments for it.
func TestShutdownWaitsForNoRoomThatNobodyMakes(t *testing.T) {
	for name, large := range map[string]bool{"for some writes": false, "for one that takes more than is ever ready": true} {
		t.Run(name, func(t *testing.T) {
			copies := hlogtest.New(t, 1)
			srv, st := launch(t, store.Options{Dir: t.TempDir(), Durability: store.EverySec, SegmentBytes: 64 << 10, Replicator: copies}, redis.Config{Loops: 1})
			c := dial(t, "tcp", srv.Addr().String())
			sendTo(t, c, bulk("SET", "k", "v"))
			expect(t, c, "+OK\r\n") // A segment is in use.
			copies.RefuseOpens(-1)
			before, value := st.Metrics().Batches, strings.Repeat("x", 1000)
			if large {
				value = strings.Repeat("x", 8<<20)
			}
			var writing sync.WaitGroup
			writing.Go(func() {
				for i, err := 0, error(nil); err == nil; i++ {
					_, err = io.WriteString(c, bulk("SET", fmt.Sprint(i), value))
				}
			})
			writing.Go(func() { _, _ = io.Copy(io.Discard, c) })
			await.True(t, "a write waits for room", func() bool {
				if large {
					return st.Metrics().Batches > before // The rest of it has no room.
				}
				return srv.Fetching(0) > 0
			})
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := srv.Shutdown(ctx); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			writing.Wait()
			copies.RefuseOpens(0)
			if err := st.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	srv, st := prepare(t, store.Options{}, redis.Config{})
	defer st.Close()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- srv.Serve(ctx) }()
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if err := srv.Start(); err == nil {
		t.Fatal("a Server started twice")
	}
}

// shutdownNow shuts the server down before the test's end.
func shutdownNow(t testing.TB, srv *redis.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := srv.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
}
