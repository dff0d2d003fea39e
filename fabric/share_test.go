package fabric_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/ostrodb/ostro/fabric"
)

func TestWhatOneWritesToSharedMemoryTheOtherReads(t *testing.T) {
	mine, share, err := fabric.NewShared(10_000)
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Close()
	others, err := fabric.OpenShared(share)
	if err != nil {
		t.Fatal(err)
	}
	copy(others.Bytes()[5000:], "from afar")
	if got := mine.Bytes()[5000:5009]; string(got) != "from afar" {
		t.Errorf("%q arrived", got)
	}
	if err := mine.Close(); err != nil {
		t.Fatal(err)
	}
	others.Bytes()[0] = 1 // Its own mapping stays.
	if err := others.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestNothingElseIsTakenForSharedMemory(t *testing.T) {
	mine, share, err := fabric.NewShared(100)
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Close()
	other, _, err := fabric.NewShared(100)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	plain, err := os.CreateTemp(t.TempDir(), "plain")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	for name, change := range map[string]func(*fabric.Share){
		"another memory":     func(s *fabric.Share) { s.File = int(other.File().Fd()) },
		"a file":             func(s *fabric.Share) { s.File = int(plain.Fd()) },
		"none":               func(s *fabric.Share) { s.File = 1 << 20 },
		"no process":         func(s *fabric.Share) { s.Process = 1 << 30 },
		"another size":       func(s *fabric.Share) { s.Bytes *= 2 },
		"a negative size":    func(s *fabric.Share) { s.Bytes = -1 },
		"a mark that is not": func(s *fabric.Share) { s.Mark = bytes.Repeat([]byte{7}, len(s.Mark)) },
		"no mark":            func(s *fabric.Share) { s.Mark = nil },
	} {
		s := share
		change(&s)
		if m, err := fabric.OpenShared(s); err == nil {
			t.Errorf("%s was taken", name)
			_ = m.Close()
		}
	}
}
