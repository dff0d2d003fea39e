package call_test

import (
	"context"
	"log/slog"
	"os"
	"testing"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server/call"
	"github.com/ostrodb/ostro/tenant"
	"github.com/ostrodb/ostro/tenant/library"
	"github.com/ostrodb/ostro/tenant/sched"
)

// world is a store, the functions for tests, and a worker of a door that calls them.
type world struct {
	t      testing.TB
	st     *store.Store
	sess   *store.Session
	host   *call.Host
	caller *call.Caller
	shelf  *library.Shelf
	share  *sched.Share
}

func newWorld(t testing.TB, o store.Options) *world {
	t.Helper()
	w := &world{t: t}
	var err error
	if w.st, err = store.Open(o); err != nil {
		t.Fatal(err)
	}
	book, err := tenant.OpenFile("")
	if err != nil {
		t.Fatal(err)
	}
	tenants, err := tenant.Open(context.Background(), book, w.st, slog.New(slog.DiscardHandler), sched.Options{})
	if err != nil {
		t.Fatal(err)
	}
	files, err := library.OpenFiles("")
	if err != nil {
		t.Fatal(err)
	}
	lib, err := library.Open(context.Background(), library.Options{Book: files})
	if err != nil {
		t.Fatal(err)
	}
	w.shelf, w.share = lib.Shelf(nil), tenants.Share(nil)
	code, err := os.ReadFile("testdata/calls.wasm")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.shelf.Install(context.Background(), library.Package{Name: "calls", Code: code}, true); err != nil {
		t.Fatal(err)
	}
	if w.sess, err = w.st.NewSession(); err != nil {
		t.Fatal(err)
	}
	w.host = call.NewHost(w.st, call.Options{})
	w.caller = w.host.NewCaller(w.sess)
	t.Cleanup(func() {
		w.host.Close()
		w.sess.Close()
		lib.Close()
		tenants.Close()
		if err := w.st.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) request(name string, key string, args ...string) *call.Request {
	r := &call.Request{Shelf: w.shelf, Share: w.share, Name: []byte(name), Scope: call.Scope{Tables: 16}}
	r.Keys = [][]byte{[]byte(key)}
	for _, a := range args {
		r.Args = append(r.Args, []byte(a))
	}
	return r
}

// put writes a record.
func (w *world) put(key, value string) {
	w.t.Helper()
	w.sess.Begin()
	defer w.sess.End()
	k := w.sess.Key(0, []byte(key))
	if st := w.sess.Put(&k, store.Write{Value: []byte(value)}, nil); st != store.OK {
		w.t.Fatal(st, w.sess.Err())
	}
}

// call runs a call to its end, wherever.
func (w *world) call(r *call.Request) (string, error) {
	w.t.Helper()
	var task *call.Task
	for {
		var v call.Verdict
		w.sess.Begin()
		v, task = w.caller.Call(r, task)
		response, err := string(w.caller.Response), w.caller.Err
		w.sess.End()
		switch v {
		case call.Done:
			return response, err
		case call.Cold:
			if err := w.sess.Fetch(context.Background()); err != nil {
				w.t.Fatal(err)
			}
		case call.Later:
			done := make(chan struct{})
			if err := w.host.Start(r, task, func() { close(done) }); err != nil {
				w.t.Fatal(err)
			}
			<-done
		}
	}
}

// warm calls until it ends where it begins.
func (w *world) warm(r *call.Request) {
	w.t.Helper()
	for {
		w.sess.Begin()
		v, task := w.caller.Call(r, nil)
		w.sess.End()
		if v == call.Done {
			if w.caller.Err != nil {
				w.t.Fatal(w.caller.Err)
			}
			return
		}
		done := make(chan struct{})
		if err := w.host.Start(r, task, func() { close(done) }); err != nil {
			w.t.Fatal(err)
		}
		<-done
	}
}
