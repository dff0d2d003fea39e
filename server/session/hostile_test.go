package session_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/ostrodb/ostro/client"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server/session"
	"github.com/ostrodb/ostro/wire"
)

// greetRaw says hello behind the magic and takes welcome and map.
func greetRaw(c net.Conn) error { return greetAs(c, "", "") }

func greetAs(c net.Conn, user, password string) error {
	hello := wire.Hello{Version: wire.Version, Client: 1, User: []byte(user), Secret: []byte(password)}
	if _, err := c.Write(wire.AppendHello(nil, &hello)); err != nil {
		return err
	}
	for _, want := range []wire.Type{wire.TypeWelcome, wire.TypeMap} {
		if t, _, err := readRaw(c); err != nil || t != want {
			return fmt.Errorf("%s instead of %s: %w", t, want, err)
		}
	}
	return nil
}

// readRaw reads one frame.
func readRaw(c net.Conn) (wire.Type, []byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return 0, nil, err
	}
	body := make([]byte, binary.LittleEndian.Uint32(head[:]))
	if _, err := io.ReadFull(c, body); err != nil {
		return 0, nil, err
	}
	return wire.Type(body[0]), body[1:], nil
}

func frameOf(view uint64, ops ...wire.Op) []byte {
	b, start := wire.BeginBatch(nil, &wire.Batch{View: view, Client: 1, Number: 1})
	for i := range ops {
		ops[i].Tag = uint32(i)
		b = wire.AppendOp(b, &ops[i], 0)
	}
	return wire.EndBatch(b, start, len(ops))
}

func putFrame(view uint64, key, value string) []byte {
	return frameOf(view, wire.Op{Code: wire.OpPut, Key: []byte(key), Arg: []byte(value)})
}

func readFrame(view uint64, key string) []byte {
	return frameOf(view, wire.Op{Code: wire.OpRead, Key: []byte(key)})
}

// rawSession opens a session that says nothing but the magic yet.
func rawSession(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte(wire.Magic)); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestFramesThatMakeNoSenseEndTheSessionWithAWord(t *testing.T) {
	_, addr := serve(t, openStore(t, store.Options{}), session.Options{MaxFrameBytes: 1 << 20})
	hello := wire.AppendHello(nil, &wire.Hello{Version: wire.Version})
	damaged := putFrame(1, "k", "v")
	damaged[wire.HeaderBytes+40] = 99
	for name, c := range map[string]struct {
		bytes []byte
		want  string
	}{
		"a batch before hello":   {putFrame(1, "k", "v"), "begins with a hello"},
		"another version":        {wire.AppendHello(nil, &wire.Hello{Version: 9}), "another version"},
		"a hello that is cut":    {[]byte{3, 0, 0, 0, 1, 1, 0}, "ends too early"},
		"a huge hello":           {[]byte{0, 0, 0, 1, 1}, "too large"},
		"no frame":               {append(bytes.Clone(hello), 0, 0, 0, 0, 1), "ends too early"},
		"a huge frame":           {append(bytes.Clone(hello), 0xff, 0xff, 0xff, 0xff, 3), "too large"},
		"a server's frame":       {append(bytes.Clone(hello), wire.AppendGoodbye(nil, 1, "")...), "not a goodbye frame"},
		"an unknown frame":       {append(bytes.Clone(hello), 1, 0, 0, 0, 77), "not a type 77 frame"},
		"an unknown operation":   {append(bytes.Clone(hello), damaged...), "no such operation"},
		"a batch that is cut":    {append(bytes.Clone(hello), 3, 0, 0, 0, 3, 0, 0), "ends too early"},
		"half a hello, then end": {hello[:7], ""},
	} {
		t.Run(name, func(t *testing.T) {
			conn := rawSession(t, addr)
			if _, err := conn.Write(c.bytes); err != nil {
				t.Fatal(err)
			}
			if c.want == "" {
				return // The test's end closes it.
			}
			for {
				typ, body, err := readRaw(conn)
				if err != nil {
					t.Fatalf("the server said nothing: %v", err)
				}
				if typ != wire.TypeGoodbye {
					continue
				}
				if bye, err := wire.DecodeGoodbye(body); err != nil || !strings.Contains(bye.Text, c.want) {
					t.Fatalf("%v, %v, want %q", bye, err, c.want)
				}
				break
			}
			if _, _, err := readRaw(conn); !errors.Is(err, io.EOF) {
				t.Fatalf("the session goes on: %v", err)
			}
		})
	}
}

func TestWhatIsNoNativeStreamIsClosed(t *testing.T) {
	_, addr := serve(t, openStore(t, store.Options{}), session.Options{})
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("*1\r\n$4\r\nPING\r\n")); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 10)); n > 0 || err == nil {
		t.Fatalf("%d bytes, %v", n, err)
	}
}

func TestOperationsThatMakeNoSenseAreAnsweredAndOthersGoOn(t *testing.T) {
	_, addr := serve(t, openStore(t, store.Options{}), session.Options{})
	conn := rawSession(t, addr)
	if err := greetRaw(conn); err != nil {
		t.Fatal(err)
	}
	ops := []wire.Op{
		{Code: wire.OpAdd, Key: []byte("n"), Arg: []byte("short")},
		{Code: wire.OpSwap, Key: []byte("n"), Arg: []byte{0}},
		{Code: wire.OpMerge, Key: []byte("n"), Arg: []byte{200}},
		{Code: wire.OpMultiGet, Arg: []byte{255, 255, 255, 255}},
		{Code: wire.OpMultiPut, Arg: []byte{1, 2, 3}},
		{Code: wire.OpScan, Arg: []byte("short")},
		{Code: wire.OpScan, Arg: wire.AppendScan(nil, &wire.Scan{First: 2, Last: 1, Count: 1})},
		{Code: wire.OpScan, Table: 999, Arg: wire.AppendScan(nil, &wire.Scan{Last: 1, Count: 1})},
		{Code: wire.OpScan, Arg: wire.AppendScan(nil, &wire.Scan{Last: 1, Count: 1, Cursor: 1<<64 - 1})},
		{Code: wire.OpRead, Table: 65535, Key: []byte("n")},
		{Code: wire.OpPut, Key: make([]byte, 70_000), Arg: []byte("v")},
		{Code: wire.OpPing, Arg: []byte("still there")},
	}
	want := []wire.Status{
		wire.Invalid, wire.Invalid, wire.Invalid, wire.Invalid, wire.Invalid, wire.Invalid, wire.Invalid, wire.Unknown, wire.OK, wire.Unknown, wire.TooLarge, wire.OK,
	}
	if _, err := conn.Write(frameOf(1, ops...)); err != nil {
		t.Fatal(err)
	}
	typ, body, err := readRaw(conn)
	if err != nil || typ != wire.TypeResults {
		t.Fatalf("%s, %v", typ, err)
	}
	rs, err := wire.DecodeResults(body)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for rs.More() {
		var r wire.Result
		if err := rs.Next(&r); err != nil {
			t.Fatal(err)
		}
		if r.Status != want[r.Tag] {
			t.Errorf("operation %d: %s %q, want %s", r.Tag, r.Status, r.Value, want[r.Tag])
		}
		seen++
	}
	if seen != len(ops) {
		t.Fatalf("%d results of %d operations", seen, len(ops))
	}
}

// TestRandomBytesHarmNobody sends streams with random damage; another client is served all the time.
func TestRandomBytesHarmNobody(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 2))
	_, addr := serve(t, openStore(t, store.Options{}), session.Options{})
	c := dial(t, "ostro://"+addr, client.Options{})
	for range 300 {
		stream := wire.AppendHello(nil, &wire.Hello{Version: wire.Version})
		for range 1 + random.IntN(5) {
			stream = append(stream, frameOf(1,
				wire.Op{Code: wire.Code(1 + random.IntN(12)), Flags: wire.Flags(random.IntN(8)), Key: []byte("key"), Arg: make([]byte, random.IntN(60))},
				wire.Op{Code: wire.OpRead, Key: []byte("mine")})...)
		}
		for range random.IntN(4) {
			stream[random.IntN(len(stream))] ^= byte(1 << random.IntN(8))
		}
		conn := rawSession(t, addr)
		_, err := conn.Write(stream[:random.IntN(len(stream)+1)])
		if err == nil && random.IntN(2) == 0 {
			_ = conn.(*net.TCPConn).CloseWrite() // So that it comes to an end.
			_, _ = io.Copy(io.Discard, conn)
		}
		_ = conn.Close()
		run(t, c, []step{{op: client.Put(0, []byte("mine"), []byte("v"))}, {op: client.Get(0, []byte("mine")), value: "v"}})
	}
}

func TestOnlySoManySessionsAreTaken(t *testing.T) {
	_, addr := serve(t, openStore(t, store.Options{}), session.Options{MaxSessions: 1})
	first := rawSession(t, addr)
	if err := greetRaw(first); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Dial(t.Context(), "ostro://"+addr, client.Options{}); err == nil || !strings.Contains(err.Error(), "as many sessions as it takes") {
		t.Fatal(err)
	}
}
