package redis

import (
	"strings"
	"testing"

	"github.com/ostrodb/ostro/engine/store"
)

// bench runs handlers without a network.
type bench struct{ c call }

func newBench(tb testing.TB) *bench {
	tb.Helper()
	st, err := store.Open(store.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	srv, err := New(st, Config{})
	if err != nil {
		tb.Fatal(err)
	}
	ss, err := st.NewSession()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ss.Close()
		if err := st.Close(); err != nil {
			tb.Error(err)
		}
	})
	cn := &conn{srv: srv, authenticated: true, databases: srv.cfg.Databases}
	ended := &loop{srv: srv}
	ended.tally.init()
	ended.inbox.closed = true
	cn.loop.Store(ended)
	return &bench{call{srv: srv, conn: cn, ss: ss, out: &cn.out, now: 1}}
}

// do runs one command and returns its reply.
func (b *bench) do(args [][]byte) string {
	b.run(args)
	return string(b.c.out.Bytes())
}

func (b *bench) run(args [][]byte) verdict {
	c := &b.c
	c.out.Truncate(0)
	c.cmd, c.args, c.db = lookup(args[0]), args, c.conn.db
	c.ss.Begin()
	v := c.cmd.run(c)
	c.ss.End()
	return v
}

func words(line string) (args [][]byte) {
	for _, w := range strings.Fields(line) {
		args = append(args, []byte(w))
	}
	return args
}

func TestHotCommandsAllocateNothing(t *testing.T) {
	b := newBench(t)
	b.do(words("mset k1 v1 k2 v2 k3 v3 bits abcdefgh"))
	for _, line := range []string{
		"get k1", "get nosuch", "set k1 value", "set k1 value ex 100 nx", "setnx k1 x", "getset k2 x", "getex k1 px 100000", "strlen k1",
		"mget k1 k2 k3", "mset k1 a k2 b", "append short x", "setrange k3 1 y", "getrange k1 0 1", "incr n", "decrby n 5",
		"setbit bits 3 1", "setbit bits 3 0", "getbit bits 3", "bitcount bits", "bitpos bits 1", "del nosuch", "exists k1 k2",
		"expire k1 100", "ttl k1", "persist k1", "type k1", "rename k1 k1", "ping", "echo hello", "select 0", "dbsize",
	} {
		args := words(line)
		b.do(args)
		if line == "append short x" {
			b.do(words("del short"))
		}
		if n := testing.AllocsPerRun(100, func() { b.run(args) }); n > 0 {
			t.Errorf("%s allocates %v times", line, n)
		}
	}
}

func TestAFailedMultiKeyWriteLeavesNothing(t *testing.T) {
	b := newBench(t)
	long := []byte(strings.Repeat("k", 1<<16))
	for _, args := range [][][]byte{
		{[]byte("mset"), []byte("a"), []byte("1"), long, []byte("2")},
		{[]byte("msetnx"), []byte("a"), []byte("1"), long, []byte("2")},
	} {
		if got := b.do(args); got != "-"+errKeyTooLong+"\r\n" {
			t.Errorf("%s answers %q", args[0], got)
		}
	}
	b.do(words("set src 1"))
	if got := b.do([][]byte{[]byte("rename"), []byte("src"), long}); !strings.HasPrefix(got, "-ERR too large") {
		t.Errorf("RENAME answers %q", got)
	}
	if got := b.do(words("mget a src")); got != "*2\r\n$-1\r\n$1\r\n1\r\n" {
		t.Errorf("afterwards there is %q", got)
	}
}

func BenchmarkHandlers(b *testing.B) {
	h := newBench(b)
	h.do(words("mset k1 v1 k2 v2 k3 v3 bits abcdefgh"))
	for _, line := range []string{"get k1", "set k1 value", "set k1 value ex 100", "incr n", "mget k1 k2 k3", "mset k1 a k2 b", "expire k1 100", "getbit bits 3"} {
		args := words(line)
		b.Run(strings.ReplaceAll(line, " ", "_"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				h.run(args)
			}
		})
	}
}
