package tcp_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/fabrictest"
	"github.com/ostrodb/ostro/fabric/frame"
)

const secret = "correct horse"

// impostor is a peer that knows the secret and means no good: it speaks frames by
// hand, in both directions.
type impostor struct {
	t        testing.TB
	listener net.Listener
	endpoint fabric.Endpoint
	out      net.Conn // requests to the victim
	in       net.Conn // requests of the victim
}

func newImpostor(t testing.TB) *impostor {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return &impostor{t: t, listener: l, endpoint: fabric.Endpoint{
		NIC: fabric.NICID{6, 6, 6}, QP: 66, Token: 666, Peer: "impostor", Addr: l.Addr().String(),
	}}
}

// connect becomes the victim's peer.
func (p *impostor) connect(victim fabric.QP) {
	p.t.Helper()
	p.check(victim.Connect(p.endpoint))
	in, err := p.listener.Accept()
	p.check(err)
	p.in = in
	_, err = frame.Listen(in, []byte(secret))
	p.check(err)
	p.check(frame.Accept(in))
	p.out = p.dial(victim)
	p.check(frame.Answered(p.out))
	p.t.Cleanup(func() { _, _ = p.in.Close(), p.out.Close() })
	p.check(victim.Ready(p.t.Context()))
}

func (p *impostor) dial(victim fabric.QP) net.Conn {
	p.t.Helper()
	to := victim.Endpoint()
	c, err := net.Dial("tcp", to.Addr)
	p.check(err)
	p.check(c.SetDeadline(time.Now().Add(30 * time.Second)))
	p.check(frame.Call(c, []byte(secret), frame.Hello{From: p.endpoint, To: to.QP, Token: to.Token, RNRWait: -1}))
	return c
}

func (p *impostor) check(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *impostor) send(r frame.Request, payload []byte) {
	p.t.Helper()
	var b [frame.RequestBytes]byte
	r.Encode(&b)
	_, err := p.out.Write(append(b[:], payload...))
	p.check(err)
}

func (p *impostor) answer() frame.Answer {
	p.t.Helper()
	var b [frame.AnswerBytes]byte
	_, err := io.ReadFull(p.out, b[:])
	p.check(err)
	var a frame.Answer
	p.check(a.Decode(&b))
	return a
}

// silent tells that the victim hangs up without another word.
func (p *impostor) silent() {
	p.t.Helper()
	if n, err := p.out.Read(make([]byte, 1)); n != 0 || err == nil {
		p.t.Fatalf("the victim still talks: %d, %v", n, err)
	}
}

// victim is an end on a host, and a bystander: another pair on the same host
// that nothing may disturb.
func victim(t testing.TB) (v fabrictest.End, metrics func() fabric.Metrics, undisturbed func()) {
	t.Helper()
	h := host(t, secret)
	d := device(t, h, "victim")
	v = fabrictest.Single(t, d)
	a, b := fabrictest.Pair(t, []fabric.Device{device(t, h, "b1"), device(t, host(t, secret), "b2")})
	metrics = func() fabric.Metrics {
		m, err := d.Metrics()
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	undisturbed = func() {
		t.Helper()
		for _, x := range []struct{ from, to fabrictest.End }{{a, b}, {b, a}} {
			x.from.Memory().Bytes()[0]++
			if c := x.from.Do(fabric.Write(x.to.At(64), x.from.Piece(0, 1))); c.Status != fabric.OK {
				t.Fatalf("a bystander suffered: %v", c.Status)
			}
			if x.to.Memory().Bytes()[64] != x.from.Memory().Bytes()[0] {
				t.Fatal("a bystander's byte is missing")
			}
		}
	}
	return v, metrics, undisturbed
}

func untouched(t testing.TB, v fabrictest.End) {
	t.Helper()
	if len(bytes.Trim(v.Memory().Bytes(), "\x00")) != 0 {
		t.Fatal("bytes landed")
	}
}

func TestAPeerWithoutTheSecretIsRefusedAndCounted(t *testing.T) {
	v, metrics, undisturbed := victim(t)
	c, err := net.Dial("tcp", v.QP().Endpoint().Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := frame.Call(c, []byte("wrong"), frame.Hello{}); !errors.Is(err, frame.ErrUnauthorized) {
		t.Fatalf("got %v", err)
	}
	// One that does not look at the victim's proof and goes on.
	d, err := net.Dial("tcp", v.QP().Endpoint().Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	_, _ = d.Write(append([]byte("OSTROFB1"), make([]byte, 32+32)...))
	_, _ = d.Write([]byte{2, 0, '{', '}'})
	_, _ = io.ReadAll(d)
	if m := metrics(); m.Unauthorized != 1 {
		t.Fatalf("%d were counted", m.Unauthorized)
	}
	undisturbed()
}

func TestDevicesWithDifferentSecretsDoNotConnect(t *testing.T) {
	a := fabrictest.Single(t, device(t, host(t, "one"), "a"))
	b := fabrictest.Single(t, device(t, host(t, "two"), "b"))
	for _, x := range [][2]fabrictest.End{{a, b}, {b, a}} {
		if err := x[0].QP().Connect(x[1].QP().Endpoint()); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.QP().Ready(t.Context()); !errors.Is(err, fabric.ErrBroken) {
		t.Fatalf("got %v", err)
	}
}

func TestMalformedFramesEndTheStreamAndAreCounted(t *testing.T) {
	good := frame.Request{Op: fabric.OpWrite, Seq: 5}
	var bytesOf [frame.RequestBytes]byte
	for name, spoil := range map[string]func(*[frame.RequestBytes]byte){
		"an unknown operation":         func(b *[frame.RequestBytes]byte) { b[0] = 99 },
		"one that never travels":       func(b *[frame.RequestBytes]byte) { b[0] = byte(fabric.OpWait) },
		"a flag that never travels":    func(b *[frame.RequestBytes]byte) { b[1] = byte(fabric.Signaled) },
		"another mark":                 func(b *[frame.RequestBytes]byte) { b[2] ^= 1 },
		"a sequence that goes nowhere": nil,
	} {
		t.Run(name, func(t *testing.T) {
			v, metrics, undisturbed := victim(t)
			p := newImpostor(t)
			p.connect(v.QP())
			good.At = v.At(0)
			good.Encode(&bytesOf)
			if spoil == nil {
				p.send(good, nil) // Of no bytes; the same sequence follows.
				p.answer()
			} else {
				spoil(&bytesOf)
			}
			_, err := p.out.Write(bytesOf[:])
			p.check(err)
			p.silent()
			if m := metrics(); m.Malformed != 1 {
				t.Fatalf("%d malformed frames were counted", m.Malformed)
			}
			untouched(t, v)
			undisturbed()
		})
	}
}

func TestForgedKeysAreRefusedOverTheWire(t *testing.T) {
	v, metrics, undisturbed := victim(t)
	p := newImpostor(t)
	p.connect(v.QP())
	p.send(frame.Request{Op: fabric.OpWrite, Seq: 1, Bytes: 100_000, At: fabric.Target{Key: 12345}}, make([]byte, 70_000))
	if a := p.answer(); a.Kind != frame.Nak || a.Status != fabric.RemoteAccess || a.Seq != 1 {
		t.Fatalf("got %+v", a)
	}
	if m := metrics(); m.RefusedKey != 1 {
		t.Fatalf("%d refusals were counted", m.RefusedKey)
	}
	undisturbed()
}

func TestNothingBehindARefusedRequestIsExecuted(t *testing.T) {
	v, _, undisturbed := victim(t)
	p := newImpostor(t)
	p.connect(v.QP())
	ones := bytes.Repeat([]byte{1}, 64)
	p.send(frame.Request{Op: fabric.OpWrite, Seq: 1, Bytes: 64, At: fabric.Target{Key: 9}}, ones)
	p.send(frame.Request{Op: fabric.OpWrite, Seq: 2, Bytes: 64, At: v.At(0)}, ones)
	if a := p.answer(); a.Kind != frame.Nak {
		t.Fatalf("got %+v", a)
	}
	p.silent()
	untouched(t, v)
	undisturbed()
}

func TestAStreamCutInAPayloadLeavesAPrefix(t *testing.T) {
	for _, cut := range []int{0, 1, 7, 100, 8192, 20_001, 99_999} {
		v, _, undisturbed := victim(t)
		p := newImpostor(t)
		p.connect(v.QP())
		p.send(frame.Request{Op: fabric.OpWrite, Seq: 1, Bytes: 100_000, At: v.At(5)}, bytes.Repeat([]byte{1}, cut))
		p.check(p.out.Close())
		for v.QP().State() == fabric.Ready {
			runtime.Gosched()
		}
		got := v.Memory().Bytes()
		if n := bytes.Count(got, []byte{1}); n > cut || bytes.Count(got[5:5+n], []byte{1}) != n {
			t.Fatalf("cut at %d: %d bytes landed, or not in order", cut, n)
		}
		undisturbed()
	}
}

func TestAnswersThatMakeNoSenseBreakTheConnection(t *testing.T) {
	for name, a := range map[string]frame.Answer{
		"a sequence not in flight":         {Kind: frame.Ack, Seq: 77},
		"an acknowledgement without bytes": {Kind: frame.Ack, Seq: 0},
		"more bytes than were asked for":   {Kind: frame.Data, Seq: 0, Value: 1 << 40},
		"a value for a READ":               {Kind: frame.Value, Seq: 0},
		"an unknown kind":                  {Kind: 9, Seq: 0},
	} {
		t.Run(name, func(t *testing.T) {
			v, metrics, undisturbed := victim(t)
			p := newImpostor(t)
			p.connect(v.QP())
			if err := v.QP().Post(fabric.Read(fabric.Target{}, v.Piece(0, 100)).Signal(1)); err != nil {
				t.Fatal(err)
			}
			_, err := io.ReadFull(p.in, make([]byte, frame.RequestBytes))
			p.check(err)
			var b [frame.AnswerBytes]byte
			a.Encode(&b)
			_, err = p.in.Write(b[:])
			p.check(err)
			if c := v.Next(); c.Status != fabric.PeerLost {
				t.Fatalf("the READ ended with %v", c.Status)
			}
			if m := metrics(); m.Malformed != 1 {
				t.Fatalf("%d malformed frames were counted", m.Malformed)
			}
			untouched(t, v)
			undisturbed()
		})
	}
}

func TestACallerThatTheQueuePairDidNotNameIsRefused(t *testing.T) {
	v, metrics, undisturbed := victim(t)
	other := newImpostor(t)
	if err := v.QP().Connect(other.endpoint); err != nil {
		t.Fatal(err)
	}
	p := newImpostor(t)
	p.endpoint.Token++
	c := p.dial(v.QP())
	defer c.Close()
	if err := frame.Answered(c); err == nil {
		t.Fatal("it was let in")
	}
	if m := metrics(); m.RefusedPeer != 1 {
		t.Fatalf("%d were counted", m.RefusedPeer)
	}
	undisturbed()
}

func FuzzAStreamOfAnyBytesDisturbsNothingElse(f *testing.F) {
	var b [frame.RequestBytes]byte
	for op := fabric.OpWrite; op <= fabric.OpSend; op++ {
		(&frame.Request{Op: op, Seq: uint32(op), Bytes: 8}).Encode(&b)
		f.Add(append(b[:], "payload!"...), true)
	}
	h := host(f, secret)
	f.Fuzz(func(t *testing.T, stream []byte, keyed bool) {
		d, err := h.Device("victim")
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		v := fabrictest.Single(t, d)
		p := newImpostor(t)
		p.connect(v.QP())
		if keyed && len(stream) >= frame.RequestBytes { // Let it get further than the key.
			at := v.At(0)
			copy(stream[16:24], []byte{byte(at.Key), byte(at.Key >> 8), byte(at.Key >> 16), byte(at.Key >> 24), byte(at.Key >> 32), byte(at.Key >> 40), byte(at.Key >> 48), byte(at.Key >> 56)})
		}
		_, _ = p.out.Write(stream)
		_ = p.out.(*net.TCPConn).CloseWrite()
		_, _ = io.ReadAll(p.out)
		for v.QP().State() == fabric.Ready {
			runtime.Gosched()
		}
	})
}
