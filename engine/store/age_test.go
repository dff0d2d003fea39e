package store_test

import (
	"fmt"
	"testing"

	"github.com/ostrodb/ostro/engine/store"
)

func TestACacheKeepsWhatIsReadAndForgetsTheRest(t *testing.T) {
	t.Parallel()
	st := open(t, store.Options{MemoryBytes: 36 << 20, Policy: store.Evict})
	ss := session(t, st)
	const hot = 500
	put := func(n int) {
		k := key(ss, n)
		w := store.Write{Value: fmt.Appendf(nil, "%0200d", n)}
		if s := until(t, ss, func() store.Status { return ss.Put(&k, w, nil) }); s != store.OK {
			t.Fatal(s, ss.Err())
		}
	}
	there := func(n int) bool {
		k := key(ss, n)
		return until(t, ss, func() store.Status { _, s := ss.Get(&k); return s }) == store.OK
	}
	for n := range hot {
		put(n)
	}
	const all = 300000 // more than twice the memory
	for n := hot; n < all; n++ {
		put(n)
		there(n % hot)
	}
	kept, others := 0, 0
	for n := range hot {
		if there(n) {
			kept++
		}
	}
	for n := hot; n < all/4; n++ {
		if there(n) {
			others++
		}
	}
	if kept < hot*3/4 || others > 0 {
		t.Errorf("%d of %d hot keys are left, and %d of the old cold ones", kept, hot, others)
	}
	if m := st.Metrics(); m.Evicted == 0 {
		t.Error("nothing was evicted")
	}
}
