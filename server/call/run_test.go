package call_test

import (
	"testing"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server/call"
)

func TestCallsOfARunAreCountedAsCallsAloneAre(t *testing.T) {
	w := newWorld(t, store.Options{})
	w.put("key", "value")
	look, absent := w.request("look", "key"), w.request("look", "key")
	absent.Name = []byte("nobody")
	look.Site = new(call.Site)
	w.warm(look)
	count := func() (calls, reads, bytes, nanos int64) {
		for _, u := range w.shelf.Usage() {
			c := u.Of["look"]
			calls, reads, bytes, nanos = calls+c.Calls, reads+c.Reads, bytes+c.Bytes, nanos+int64(c.Time)
		}
		return calls, reads, bytes, nanos
	}
	calls, reads, bytes, nanos := count()
	inline := w.host.Metrics().Inline
	const runs, each = 7, 5
	for range runs {
		look.Site.Expect()
		w.sess.Begin()
		w.caller.Begin()
		for range each {
			if v, _ := w.caller.Call(look, nil); v != call.Done || w.caller.Err != nil || string(w.caller.Response) != "value" {
				t.Fatalf("%v %v %q", v, w.caller.Err, w.caller.Response)
			}
			if w.caller.Call(absent, nil); w.caller.Err != call.ErrNotFound {
				t.Fatalf("a function that nobody has: %v", w.caller.Err)
			}
		}
		w.caller.End()
		w.sess.End()
	}
	c, r, b, n := count()
	if c-calls != runs*each || r-reads != runs*each || b-bytes != runs*each*5 || n <= nanos {
		t.Errorf("%d calls with %d reads and %d bytes in %d ns", c-calls, r-reads, b-bytes, n-nanos)
	}
	if got := w.host.Metrics().Inline - inline; got != runs*each {
		t.Errorf("%d calls ended where they began", got)
	}
}

func TestARequestsOwnKeyIsFoundByItsName(t *testing.T) {
	w := newWorld(t, store.Options{})
	w.put("key", "value")
	r := w.request("look", "key")
	w.warm(r)
	w.sess.Begin()
	k := w.sess.Key(0, []byte("key"))
	r.Named = &k
	v, _ := w.caller.Call(r, nil)
	got, err := string(w.caller.Response), w.caller.Err
	w.sess.End()
	if v != call.Done || err != nil || got != "value" {
		t.Errorf("%v %v %q", v, err, got)
	}
}
