package call

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/tenant/extension"
)

func TestOnlySoManyAbsentKeysAreHeldAtOnce(t *testing.T) {
	st, err := store.Open(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	sess, err := st.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer sess.Close()
	var reads []extension.Read
	for n, want := range map[int]error{absentMost: nil, absentMost + 1: errAbsent} {
		reads = reads[:0]
		for i := range n {
			reads = append(reads, extension.Read{Key: fmt.Append(nil, "key", i)})
		}
		var c commit
		sess.Begin()
		c.begin(sess, &Request{Scope: Scope{Tables: 1}}, nil)
		err := c.run(&extension.Changes{Reads: reads})
		sess.End()
		if !errors.Is(err, want) {
			t.Errorf("%d keys: %v, want %v", n, err, want)
		}
	}
}
