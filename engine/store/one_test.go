package store

import "testing"

// openOne opens a store and a session of it, until the test ends.
func openOne(t *testing.T, o Options) (*Store, *Session) {
	t.Helper()
	st, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	ss, err := st.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ss.Close)
	return st, ss
}
