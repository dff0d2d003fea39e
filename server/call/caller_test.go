package call_test

import (
	"testing"

	"github.com/ostrodb/ostro/engine/store"
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
