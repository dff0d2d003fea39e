package call

import (
	"errors"
	"testing"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/tenant/extension"
)

func TestACallThatOnlyReadsEndsWellIfThereWasAMomentForAllItsReads(t *testing.T) {
	st, err := store.Open(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	sessions := [2]*store.Session{}
	for i := range sessions {
		if sessions[i], err = st.NewSession(); err != nil {
			t.Fatal(err)
		}
		defer sessions[i].Close()
	}
	put := func(key, value string) {
		t.Helper()
		s := sessions[1]
		s.Begin()
		defer s.End()
		k := s.Key(0, []byte(key))
		if st := s.Put(&k, store.Write{Value: []byte(value)}, nil); st != store.OK {
			t.Fatal(st)
		}
	}
	n := near{sess: sessions[0], req: &Request{Scope: Scope{Tables: 16}}}
	for _, c := range []struct {
		name          string
		first         string // that is read
		during, after string // what others write meanwhile
		want          error
	}{
		{"nothing changes", "a", "", "", nil},
		{"another key changes", "a", "c", "c", nil},
		{"the first changes before the last is read", "a", "a", "", errConflict},
		{"the first changes afterwards", "a", "", "a", errConflict}, // It may have been before: who can tell.
		{"the last changes afterwards", "a", "", "b", nil},
		{"an absent one stays so", "absent", "", "", nil},
		{"an absent one appears", "absent 2", "absent 2", "", errConflict},
	} {
		t.Run(c.name, func(t *testing.T) {
			put("a", "1")
			put("b", "1")
			n.sess.Begin()
			defer n.sess.End()
			n.begin()
			var ch extension.Changes
			for i, key := range []string{c.first, "b"} {
				if i == 1 && c.during != "" {
					put(c.during, "2")
				}
				var v extension.Value
				if got := n.Get(0, []byte(key), make([]byte, 8), &v); got > extension.OK {
					t.Fatal(got)
				}
				ch.Reads = append(ch.Reads, extension.Read{Key: []byte(key), Version: v.Version})
			}
			if c.after != "" {
				put(c.after, "3")
			}
			if err := n.Commit(&ch); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}
