package extension_test

import (
	"testing"

	"github.com/ostrodb/ostro/tenant/extension"
	"github.com/ostrodb/ostro/tenant/extension/local"
)

// prompt is a store that gives what it has before it is asked, and counts what was committed.
type prompt struct {
	*local.Store
	asked int
	reads int // of the last commit
}

func (s *prompt) Prompt(key, buf []byte, v *extension.Value) bool {
	s.asked++
	return s.Get(0, key, buf, v) == extension.OK && v.Len <= len(buf)
}

func (s *prompt) Commit(c *extension.Changes) error {
	s.reads = len(c.Reads)
	return s.Store.Commit(c)
}

func (s *prompt) call(t *testing.T, p *extension.Pool, fn string, args ...string) string {
	t.Helper()
	inv := &extension.Invocation{Function: fn, Keys: [][]byte{[]byte("key")}, Store: s, Prompt: s}
	for _, a := range args {
		inv.Args = append(inv.Args, []byte(a))
	}
	res, err := p.Call(inv)
	if err != nil {
		t.Fatal(err)
	}
	return string(res.Response)
}

func TestWhoBeginsWithItsFirstKeyFindsTheValueThere(t *testing.T) {
	p := newPool(t, "first", extension.PoolOptions{})
	s := &prompt{Store: storeOf(t, "key=value")}
	for i, want := range []string{"gvalue", "pvalue", "pvalue"} {
		if got := s.call(t, p, "read"); got != want {
			t.Errorf("call %d: %q, want %q", i, got, want)
		}
	}
	res, err := p.Call(&extension.Invocation{Function: "read", Keys: [][]byte{[]byte("key")}, Store: s})
	if err != nil || string(res.Response) != "gvalue" {
		t.Errorf("with a store that is not to be asked: %q, %v", res.Response, err)
	}
	if got := s.call(t, p, "read"); got != "pvalue" {
		t.Errorf("%q", got)
	}
}

func TestWhatIsAbsentOrTooLongIsNotPut(t *testing.T) {
	p := newPool(t, "first", extension.PoolOptions{})
	long := "0123456789012345678901234567890123456789012345678901234567890123456789"
	s := &prompt{Store: storeOf(t, "key="+long)}
	for range 2 {
		if got := s.call(t, p, "read"); got != "g"+long {
			t.Errorf("%q", got)
		}
	}
	s.Store = storeOf(t)
	_, err := p.Call(&extension.Invocation{Function: "read", Keys: [][]byte{[]byte("key")}, Store: s, Prompt: s})
	wantKind(t, err, extension.Returned)
}

func TestWhatNobodyLookedAtWasNotReadAndIsNotPutAgain(t *testing.T) {
	p := newPool(t, "first", extension.PoolOptions{})
	s := &prompt{Store: storeOf(t, "key=value")}
	for i, step := range []struct{ arg, want string }{
		{"yes", "gvalue"}, {"yes", "pvalue"}, {"", "p"}, {"", "-"}, {"yes", "gvalue"}, {"yes", "pvalue"},
	} {
		var args []string
		if step.arg != "" {
			args = append(args, step.arg)
		}
		if got := s.call(t, p, "maybe", args...); got != step.want {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
	s.call(t, p, "blind", "read")
	if s.reads = -1; s.call(t, p, "blind") != "p" || s.reads != 0 {
		t.Errorf("a write after a value that was put in vain has %d reads", s.reads)
	}
}

func TestAValueIsPutInVainOnlySoOften(t *testing.T) {
	p := newPool(t, "first", extension.PoolOptions{})
	s := &prompt{Store: storeOf(t, "key=value")}
	for range 1000 {
		s.call(t, p, "maybe", "yes")
		s.call(t, p, "maybe")
	}
	if s.asked > 100 {
		t.Errorf("%d times", s.asked)
	}
}

func TestAValueIsPutNowhereButIntoMemory(t *testing.T) {
	for _, how := range []string{"pointer", "capacity", "nothing"} {
		p := newPool(t, "first", extension.PoolOptions{})
		s := &prompt{Store: storeOf(t, "key=value")}
		s.call(t, p, "read")
		s.call(t, p, "lie", how)
		if got := s.call(t, p, "read"); got != "gvalue" {
			t.Errorf("after a lie about its %s: %q", how, got)
		}
	}
}
