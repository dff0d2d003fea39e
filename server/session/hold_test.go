package session_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostrodb/ostro/client"
	"github.com/ostrodb/ostro/engine/hlog/hlogtest"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/server/session"
)

// copied is a store whose writes are acknowledged once copies have them.
func copied(t *testing.T) (store.Options, *hlogtest.Copies) {
	copies := hlogtest.New(t, 1)
	return store.Options{Dir: t.TempDir(), Durability: store.EverySec, SegmentBytes: 1 << 20, Replicator: copies}, copies
}

func TestNoResultLeavesBeforeItsCopiesAreThere(t *testing.T) {
	so, copies := copied(t)
	srv, addr := serve(t, openStore(t, so), session.Options{})
	c := dial(t, "ostro://"+addr, client.Options{})
	run(t, c, []step{{op: client.Put(0, []byte("a"), []byte("v"))}})
	for range 5 {
		copies.Hold()
		held := srv.Metrics().Held
		var futures []*client.Future
		for i := range 100 {
			futures = append(futures, c.Put(t.Context(), 0, fmt.Append(nil, "k", i), []byte("v")))
		}
		await.True(t, "results are held", func() bool { return srv.Metrics().Held > held })
		for i, f := range futures {
			select {
			case <-f.Done():
				t.Fatalf("put %d was answered without copies", i)
			default:
			}
		}
		copies.Flow()
		for _, f := range futures {
			if _, err := f.Wait(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestALeaseThatEndsWhileResultsAreHeldEndsTheSession(t *testing.T) {
	so, copies := copied(t)
	gate := &testGate{changed: make(chan struct{})}
	gate.routing.Store(session.Alone().Routing())
	srv, addr := serve(t, openStore(t, so), session.Options{Gate: gate})
	c, hasty := dial(t, "ostro://"+addr, client.Options{}), dial(t, "ostro://"+addr, soon)
	run(t, c, []step{{op: client.Put(0, []byte("a"), []byte("v"))}})
	copies.Hold()
	defer copies.Flow()
	held := srv.Metrics().Held
	f := hasty.Put(t.Context(), 0, []byte("k"), []byte("v"))
	await.True(t, "results are held", func() bool { return srv.Metrics().Held > held })
	gate.die()
	if _, err := f.Wait(); !errors.Is(err, client.ErrUnknownOutcome) {
		t.Fatalf("the put was answered: %v", err)
	}
}

func TestColdRecordsMakeOnlyTheirOwnOperationsWait(t *testing.T) {
	for _, d := range []store.Durability{store.Checkpoint, store.EverySec} {
		t.Run(d.String(), func(t *testing.T) {
			so := store.Options{Dir: t.TempDir(), Durability: d, SegmentBytes: 128 << 10, MemoryBytes: 1 << 20, Policy: store.Spill}
			srv, addr := serve(t, openStore(t, so), session.Options{})
			c := dial(t, "ostro://"+addr, client.Options{})
			value := func(i int) []byte { return bytes.Repeat(fmt.Append(nil, i%10), 4000) }
			const n = 500
			var puts []*client.Future
			var keys [][]byte
			for i := range n {
				keys = append(keys, fmt.Append(nil, "k", i))
				puts = append(puts, c.Put(t.Context(), 0, keys[i], value(i)))
			}
			wait(t, puts)
			var gets []*client.Future
			for i := range n {
				gets = append(gets, c.Get(t.Context(), 0, keys[i]))
			}
			for i, f := range gets {
				if r, err := f.Wait(); err != nil || !bytes.Equal(r.Value, value(i)) {
					t.Fatalf("%d: %d bytes, %v", i, len(r.Value), err)
				}
			}
			var appends []*client.Future
			for i := range n {
				appends = append(appends, c.Go(t.Context(), client.Append(0, keys[i], []byte("x"))))
			}
			for i, f := range appends {
				if r, err := f.Wait(); err != nil || r.Int() != int64(len(value(i))+1) {
					t.Fatalf("append %d: %d, %v", i, r.Int(), err)
				}
			}
			for at := 0; at < n; at += 100 {
				values, err := c.MultiGet(t.Context(), 0, keys[at:at+100])
				if err != nil {
					t.Fatal(err)
				}
				for i, v := range values {
					if v.Err != nil || !bytes.Equal(v.Value, append(value(at+i), 'x')) {
						t.Fatalf("%d: %d bytes, %v", at+i, len(v.Value), v.Err)
					}
				}
			}
			seen := 0
			for rec, err := range c.Scan(t.Context(), 0, client.ScanOptions{Page: 50}) {
				if err != nil || len(rec.Value) != len(value(0))+1 {
					t.Fatalf("%s: %d bytes, %v", rec.Key, len(rec.Value), err)
				}
				seen++
			}
			if m := srv.Metrics(); seen < n || m.Waited < 50 {
				t.Fatalf("saw %d, %+v", seen, m)
			}
		})
	}
}

func wait(t *testing.T, futures []*client.Future) {
	t.Helper()
	for i, f := range futures {
		if _, err := f.Wait(); err != nil {
			t.Fatalf("operation %d: %v", i, err)
		}
	}
}

func TestShutdownAnswersWhatWasReceived(t *testing.T) {
	so, copies := copied(t)
	st := openStore(t, so)
	srv, err := session.New(st, session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	c := dial(t, "ostro://"+l.Addr().String(), client.Options{})
	run(t, c, []step{{op: client.Put(0, []byte("a"), []byte("v"))}})
	copies.Hold()
	held := srv.Metrics().Held
	f := c.Put(t.Context(), 0, []byte("k"), []byte("v"))
	await.True(t, "results are held", func() bool { return srv.Metrics().Held > held })
	var stopped sync.WaitGroup
	stopped.Go(func() { stop(t, srv) })
	select {
	case <-f.Done():
		t.Error("the put was answered without copies")
	case <-served: // It takes no more connections.
	}
	copies.Flow()
	if _, err := f.Wait(); err != nil {
		t.Error(err)
	}
	stopped.Wait()
	if _, err := client.Dial(t.Context(), "ostro://"+l.Addr().String(), client.Options{}); err == nil {
		t.Error("a stopped server took a client")
	}
}

func TestAServerThatIsStoppedBeforeItServesClosesItsPort(t *testing.T) {
	srv, err := session.New(openStore(t, store.Options{}), session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	stop(t, srv)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.Serve(l); !errors.Is(err, session.ErrStopped) {
		t.Error(err)
	}
	if err := l.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("its port is open: %v", err)
	}
}

func TestShutdownCutsWhoDoesNotEndInTime(t *testing.T) {
	so, copies := copied(t)
	st := openStore(t, so)
	srv, err := session.New(st, session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := net.Pipe()
	defer ours.Close()
	served := make(chan struct{})
	go func() {
		srv.ServeConn(theirs)
		close(served)
	}()
	hi := make(chan error, 1)
	go func() { hi <- greetRaw(ours) }()
	if err := <-hi; err != nil {
		t.Fatal(err)
	}
	copies.Hold()
	defer copies.Flow()
	if _, err := ours.Write(putFrame(1, "k", "v")); err != nil {
		t.Fatal(err)
	}
	await.True(t, "results are held", func() bool { return srv.Metrics().Held > 0 })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := srv.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	<-served
}

// Of all nodes of a cluster that are stopped one after the other the last has nobody who could open segments for it.
func TestShutdownWaitsForNoRoomThatNobodyMakes(t *testing.T) {
	for name, large := range map[string]bool{"for some writes": false, "for one that takes more than is ever ready": true} {
		t.Run(name, func(t *testing.T) {
			so, copies := copied(t)
			so.SegmentBytes = 64 << 10
			st := openStore(t, so)
			srv, err := session.New(st, session.Options{})
			if err != nil {
				t.Fatal(err)
			}
			ours, theirs := net.Pipe()
			go srv.ServeConn(theirs)
			if err := greetRaw(ours); err != nil {
				t.Fatal(err)
			}
			var writing sync.WaitGroup
			writing.Go(func() { _, _ = io.Copy(io.Discard, ours) })
			if _, err := ours.Write(putFrame(1, "k", "v")); err != nil {
				t.Fatal(err)
			}
			await.True(t, "a segment is in use", func() bool { return st.Metrics().Batches > 0 })
			copies.RefuseOpens(-1)
			defer copies.RefuseOpens(0)
			value, before := strings.Repeat("x", 1000), st.Metrics().Batches
			if large {
				value = strings.Repeat("x", 8<<20)
			}
			writing.Go(func() {
				for i, err := 0, error(nil); err == nil; i++ {
					_, err = ours.Write(putFrame(1, fmt.Sprint(i), value))
				}
			})
			await.True(t, "a write waits for room", func() bool {
				if large {
					return st.Metrics().Batches > before // The rest of it has no room.
				}
				return srv.Metrics().Waiting > 0
			})
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := srv.Shutdown(ctx); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			_ = ours.Close()
			writing.Wait()
		})
	}
}

func TestAClientThatReadsNothingIsNotServedWithoutEnd(t *testing.T) {
	_, addr := serve(t, openStore(t, store.Options{}), session.Options{})
	c := dial(t, "ostro://"+addr, client.Options{Unrecorded: true})
	run(t, c, []step{{op: client.Put(0, []byte("k"), bytes.Repeat([]byte("x"), 1<<20))}})
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("ostro/s1")); err != nil {
		t.Fatal(err)
	}
	if err := greetRaw(conn); err != nil {
		t.Fatal(err)
	}
	// Whoever asks for a megabyte again and again and reads none of it is stopped by its own
	// socket, long before it has asked for all of this.
	frame := bytes.Repeat(readFrame(1, "k"), 200)
	if err := conn.SetWriteDeadline(time.Now().Add(2 * time.Second)); err != nil {
		t.Fatal(err)
	}
	for range 2000 {
		if _, err = conn.Write(frame); err != nil {
			break
		}
	}
	if e := net.Error(nil); !errors.As(err, &e) || !e.Timeout() {
		t.Fatalf("the server took it all: %v", err)
	}
	run(t, c, []step{{op: client.Put(0, []byte("k"), nil)}})
}
