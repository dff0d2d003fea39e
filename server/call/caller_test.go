package call_test

import (
	"testing"
	"time"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/server/call"
)

func TestAShortCallThatReadsAllocatesNothing(t *testing.T) {
	w := newWorld(t, store.Options{})
	w.put("key", "a value of some thirty bytes, say")
	r := w.request("look", "key")
	w.warm(r)
	var bad error
	got := testing.AllocsPerRun(1000, func() {
		w.sess.Begin()
		v, _ := w.caller.Call(r, nil)
		if v != call.Done || w.caller.Err != nil || len(w.caller.Response) != 33 {
			bad = w.caller.Err
		}
		w.sess.End()
	})
	if bad != nil {
		t.Fatal(bad)
	}
	if got >= 1 {
		t.Errorf("%v allocations a call", got)
	}
}

// rounds of work: one ends within a trial, the other does not.
const (
	shortWork = "1"
	longWork  = "50000"
)

func TestACallWithAnIdentityIsAnsweredOnceAndForAll(t *testing.T) {
	w := newWorld(t, store.Options{})
	seq := uint64(0)
	for _, work := range []string{shortWork, longWork} {
		key := "n" + work
		take := func(limit string, seq uint64) string {
			t.Helper()
			r := w.request("take", key, limit, work)
			w.sess.Begin()
			object := w.sess.Key(0, []byte(key)).Place
			w.sess.End()
			r.Once, r.ID, r.Object = true, store.OpID{Client: 7, Seq: seq}, object
			got, err := w.call(r)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		seq += 10
		for _, s := range []struct {
			limit string
			seq   uint64
			want  string
		}{
			{"1", seq, "yes"}, {"1", seq, "yes"}, // It was counted once:
			{"1", seq + 1, "no"}, {"2", seq + 1, "no"}, // what was refused stays refused,
			{"2", seq + 2, "yes"}, {"2", seq + 3, "no"}, {"2", seq, "yes"}, // whatever others do.
		} {
			if got := take(s.limit, s.seq); got != s.want {
				t.Errorf("work %s, limit %s, attempt of %d: %s, want %s", work, s.limit, s.seq, got, s.want)
			}
		}
	}
}

func BenchmarkShortCalls(b *testing.B) {
	for _, s := range []struct {
		name string
		args []string
	}{{"look", nil}, {"count", []string{"1"}}, {"put", []string{"a value of some thirty bytes, say"}}} {
		b.Run(s.name, func(b *testing.B) {
			w := newWorld(b, store.Options{})
			w.put("key", "8 bytes.")
			r := w.request(s.name, "key", s.args...)
			w.warm(r)
			b.ReportAllocs()
			for b.Loop() {
				w.sess.Begin()
				if v, _ := w.caller.Call(r, nil); v != call.Done || w.caller.Err != nil {
					b.Fatal(v, w.caller.Err)
				}
				w.sess.End()
			}
		})
	}
}

// Who hangs up on a call that would take long owes for it, as one does whose call was ended by its deadline.
func TestACallWhoseClientHasGoneIsOwedFor(t *testing.T) {
	owesFor(t, func(_ *world, task *call.Task) { task.Cancel() })
}

// So does who kills it: to begin the next.
func TestCallsThatAreKilledAreOwedFor(t *testing.T) {
	owesFor(t, func(w *world, _ *call.Task) { w.shelf.Kill() })
}

// owesFor begins a call that would take long, and ends it before.
func owesFor(t *testing.T, end func(*world, *call.Task)) {
	t.Helper()
	w := newWorld(t, store.Options{Durability: store.None})
	w.put("k", string(make([]byte, 8)))
	r := w.request("count", "k", "4000000000")
	w.sess.Begin()
	v, task := w.caller.Call(r, nil)
	w.sess.End()
	if v != call.Later {
		t.Fatalf("an endless call has ended: %v, %v", v, w.caller.Err)
	}
	done := make(chan struct{})
	if err := w.host.Start(r, task, func() { close(done) }); err != nil {
		t.Fatal(err)
	}
	await.True(t, "it has run for long", func() bool { return w.share.Usage().CPU > 50*time.Millisecond })
	end(w, task)
	<-done
	await.True(t, "its tenant owes for it", func() bool { return w.share.Usage().Debt > 0 })
}
