package frame_test

import (
	"encoding/hex"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/frame"
)

func TestARequestHasItsGoldenBytes(t *testing.T) {
	r := frame.Request{
		Op: fabric.OpFlush, Flags: fabric.Persist, Seq: 0x01020304, Bytes: 0x11121314, Imm: 0x21222324,
		At: fabric.Target{Key: 0x3132333435363738, Addr: 0x4142434445464748}, A: 0x51, B: 0x61,
	}
	var b [frame.RequestBytes]byte
	r.Encode(&b)
	want := "07044f52" + "04030201" + "14131211" + "24232221" + "3837363534333231" + "4847464544434241" + "5100000000000000" + "6100000000000000"
	if got := hex.EncodeToString(b[:]); got != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
	var back frame.Request
	if err := back.Decode(&b); err != nil || back != r {
		t.Fatalf("got %+v, %v", back, err)
	}
}

func TestAnAnswerHasItsGoldenBytes(t *testing.T) {
	a := frame.Answer{Kind: frame.Nak, Status: fabric.RemoteAccess, Seq: 0x01020304, Value: 0x1112131415161718}
	var b [frame.AnswerBytes]byte
	a.Encode(&b)
	if got, want := hex.EncodeToString(b[:]), "04044f41"+"04030201"+"1817161514131211"; got != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
	var back frame.Answer
	if err := back.Decode(&b); err != nil || back != a {
		t.Fatalf("got %+v, %v", back, err)
	}
}

func FuzzRequestsThatDecodeEncodeToThemselves(f *testing.F) {
	var b [frame.RequestBytes]byte
	(&frame.Request{Op: fabric.OpWrite, Bytes: 7}).Encode(&b)
	f.Add(b[:])
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) != frame.RequestBytes {
			return
		}
		var r frame.Request
		if r.Decode((*[frame.RequestBytes]byte)(in)) != nil {
			return
		}
		var out [frame.RequestBytes]byte
		if r.Encode(&out); string(out[:]) != string(in) {
			t.Fatalf("%x became %x", in, out)
		}
	})
}

func FuzzAnswersThatDecodeEncodeToThemselves(f *testing.F) {
	var b [frame.AnswerBytes]byte
	(&frame.Answer{Kind: frame.Ack}).Encode(&b)
	f.Add(b[:])
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) != frame.AnswerBytes {
			return
		}
		var a frame.Answer
		if a.Decode((*[frame.AnswerBytes]byte)(in)) != nil {
			return
		}
		var out [frame.AnswerBytes]byte
		if a.Encode(&out); string(out[:]) != string(in) {
			t.Fatalf("%x became %x", in, out)
		}
	})
}

// talk runs both parts of a handshake.
func talk(t *testing.T, callerSecret, calleeSecret string) (frame.Hello, error, error) {
	t.Helper()
	a, b := net.Pipe()
	for _, c := range []net.Conn{a, b} {
		if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	h := frame.Hello{From: fabric.Endpoint{QP: 3, Peer: "x", Addr: "h:1"}, To: 7, Token: 9, RNRWait: time.Second}
	called := make(chan error, 1)
	go func() {
		err := frame.Call(a, []byte(callerSecret), h)
		if err == nil {
			err = frame.Answered(a)
		}
		_ = a.Close()
		called <- err
	}()
	got, err := frame.Listen(b, []byte(calleeSecret))
	if err == nil {
		err = frame.Accept(b)
	}
	_ = b.Close()
	return got, <-called, err
}

func TestNICsWithTheSameSecretUnderstandEachOther(t *testing.T) {
	got, caller, callee := talk(t, "s3cret", "s3cret")
	if caller != nil || callee != nil {
		t.Fatal(caller, callee)
	}
	if got.To != 7 || got.Token != 9 || got.From.Peer != "x" || got.RNRWait != time.Second {
		t.Fatalf("got %+v", got)
	}
}

func TestACallerFindsOutThatTheCalleeHasAnotherSecret(t *testing.T) {
	_, caller, callee := talk(t, "one", "two")
	if !errors.Is(caller, frame.ErrUnauthorized) || callee == nil {
		t.Fatal(caller, callee)
	}
}

func TestACalleeTrustsNoCallerWithoutTheSecret(t *testing.T) {
	a, b := net.Pipe()
	go func() {
		// A caller that does not care whether the callee knows the secret.
		_, _ = a.Write(append([]byte("OSTROFB1"), make([]byte, 32)...))
		_, _ = a.Read(make([]byte, 200))
		_, _ = a.Write(append(make([]byte, 32), 2, 0, '{', '}'))
	}()
	if _, err := frame.Listen(b, []byte("secret")); !errors.Is(err, frame.ErrUnauthorized) {
		t.Fatalf("got %v", err)
	}
}

func FuzzListenTakesAnyBytesForWhatTheyAre(f *testing.F) {
	f.Add([]byte("OSTROFB1" + string(make([]byte, 70))))
	f.Fuzz(func(t *testing.T, in []byte) {
		if _, err := frame.Listen(&script{in: in}, []byte("secret")); err == nil {
			t.Fatal("a stranger was let in")
		}
	})
}

// script is a connection whose other end says fixed bytes.
type script struct{ in []byte }

func (s *script) Read(p []byte) (int, error) {
	if len(s.in) == 0 {
		return 0, net.ErrClosed
	}
	n := copy(p, s.in)
	s.in = s.in[n:]
	return n, nil
}

func (s *script) Write(p []byte) (int, error) { return len(p), nil }
