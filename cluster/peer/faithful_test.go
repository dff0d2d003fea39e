package peer

import (
	"bytes"
	"io"
	"net"
	"testing"
)

// twoEnds are both ends of a connection of this machine.
func twoEnds(t *testing.T) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if a, err = net.Dial("tcp", l.Addr().String()); err == nil {
		b, err = l.Accept()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

func TestOnlyConnectionsThatStayOnTheMachineDoWithoutSums(t *testing.T) {
	a, b := twoEnds(t)
	if !faithful(a) || !faithful(&peeked{Conn: b}) {
		t.Error("a connection of this machine is not faithful")
	}
	far, _ := net.Pipe() // Of which nothing is known.
	if faithful(far) {
		t.Error("a connection of no known kind is faithful")
	}
}

func TestAFrameWithoutASumOfItsBulkHasOneOfAllElse(t *testing.T) {
	f := frame{kind: kindRequest, call: 7, method: "pull", head: []byte("head"), bulk: []byte("12345678"), unsummed: true}
	whole := append(f.appendFront(nil), f.bulk...)
	for i := range whole {
		broken := bytes.Clone(whole)
		broken[i] ^= 0x40
		var got frame
		_, err := got.read(bytes.NewReader(broken), nil)
		if inBulk := i >= len(whole)-len(f.bulk); inBulk != (err == nil) {
			t.Errorf("byte %d of %d is broken: %v", i, len(whole), err)
		}
	}
	var got frame
	if _, err := got.read(io.MultiReader(bytes.NewReader(whole)), nil); err != nil || !got.unsummed || string(got.bulk) != string(f.bulk) {
		t.Errorf("%+v: %v", got, err)
	}
}
