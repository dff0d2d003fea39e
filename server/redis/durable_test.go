package redis_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/engine/hlog/hlogtest"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server/redis"
)

func TestRepliesThatWaitForTheDiskKeepTheirOrder(t *testing.T) {
	srv := startServer(t, store.Options{Dir: t.TempDir(), Durability: store.Always}, redis.Config{Loops: 2})
	var wg sync.WaitGroup
	for i := range 8 {
		c := dial(t, "tcp", srv.Addr().String())
		wg.Go(func() {
			for n := range 50 {
				// Later commands need not wait for the disk, but for their turn.
				key, value := fmt.Sprint("k", i), fmt.Sprint(1000+n)
				sendTo(t, c, bulk("SET", key, value), bulk("GET", "none")+bulk("PING"), bulk("GET", key))
				expect(t, c, "+OK\r\n$-1\r\n+PONG\r\n$4\r\n"+value+"\r\n")
			}
		})
	}
	wg.Wait()
}

// One round has writes that are not copied yet, and many who read.
func TestOnlyThoseWaitForCopiesWhoseRepliesTellOfWhatHasNone(t *testing.T) {
	copies := hlogtest.New(t, 1)
	srv := startServer(t, store.Options{Dir: t.TempDir(), Durability: store.EverySec, Replicator: copies}, redis.Config{Loops: 1})
	t.Cleanup(copies.Flow)
	addr := srv.Addr().String()
	load := dial(t, "tcp", addr)
	sendTo(t, load, bulk("SET", "old", "1"), bulk("SET", "new", "1"), bulk("SET", "gone", "1"))
	expect(t, load, "+OK\r\n+OK\r\n+OK\r\n")
	list := []struct {
		name, ask, answer string
		waits             bool
	}{
		{"a write", bulk("SET", "new", "2") + bulk("DEL", "gone"), "+OK\r\n:1\r\n", true},
		{"a read of what was written before", bulk("GET", "old"), "$1\r\n1\r\n", false},
		{"one of what is written now", bulk("GET", "new"), "$1\r\n2\r\n", true},
		{"one of what is deleted now", bulk("GET", "gone"), "$-1\r\n", true},
		{"one of what never was", bulk("GET", "none"), "$-1\r\n", false},
		{"several", bulk("GET", "old") + bulk("GET", "none") + bulk("GET", "old"), "$1\r\n1\r\n$-1\r\n$1\r\n1\r\n", false},
		{"several, and one of them new", bulk("GET", "old") + bulk("GET", "new") + bulk("GET", "old"), "$1\r\n1\r\n$1\r\n2\r\n$1\r\n1\r\n", true},
		{"one behind a write", bulk("SET", "other", "1") + bulk("GET", "old"), "+OK\r\n$1\r\n1\r\n", true},
		{"one before a write", bulk("GET", "old") + bulk("SET", "another", "1"), "$1\r\n1\r\n+OK\r\n", true},
	}
	conns := make([]net.Conn, len(list))
	for i := range list {
		conns[i] = dial(t, "tcp", addr)
		sendTo(t, conns[i], "PING\r\n")
		expect(t, conns[i], "+PONG\r\n")
	}
	copies.Hold()
	release := srv.HoldLoop(0) // All of them are ready when it looks again.
	for i, one := range list {
		sendTo(t, conns[i], one.ask)
	}
	release()
	for i, one := range list {
		if !one.waits {
			expect(t, conns[i], one.answer)
		}
	}
	pass(srv)
	for i, one := range list {
		if one.waits && unread(t, conns[i]) > 0 {
			t.Errorf("%s: there is an answer before there are copies", one.name)
		}
	}
	// Who has a reply waiting gets none past it, though that would not wait itself.
	sendTo(t, conns[0], bulk("GET", "old"))
	sendTo(t, load, bulk("GET", "old"))
	expect(t, load, "$1\r\n1\r\n")
	pass(srv)
	if unread(t, conns[0]) > 0 {
		t.Error("a read overtook the write before it")
	}
	copies.Flow()
	list[0].answer += "$1\r\n1\r\n"
	for i, one := range list {
		if one.waits {
			expect(t, conns[i], one.answer)
		}
	}
}

// A reply comes in a later round than some of what it tells of was done in.
func TestRepliesOfLaterRoundsWaitForWhatWasDoneInEarlierOnes(t *testing.T) {
	copies := hlogtest.New(t, 1)
	srv := startServer(t, store.Options{Dir: t.TempDir(), Durability: store.EverySec, Replicator: copies}, redis.Config{Loops: 1})
	t.Cleanup(copies.Flow)
	c := dial(t, "tcp", srv.Addr().String())
	const keys = 10_000 // to look at all of them takes several rounds
	for i := range keys {
		sendTo(t, c, bulk("SET", fmt.Sprint("k", i), "1"))
	}
	expect(t, c, strings.Repeat("+OK\r\n", keys))
	sendTo(t, c, bulk("MULTI"), bulk("SET", "a", "1"), bulk("KEYS", "x*"))
	expect(t, c, "+OK\r\n+QUEUED\r\n+QUEUED\r\n")
	writer := dial(t, "tcp", srv.Addr().String())
	for _, one := range []struct{ name, ask, answer string }{
		{"a transaction", bulk("EXEC"), "*2\r\n+OK\r\n*0\r\n"},
		{"a command that looks at all keys", bulk("KEYS", "new"), "*1\r\n$3\r\nnew\r\n"},
		{"a write without a reply", bulk("CLIENT", "REPLY", "SKIP") + bulk("SET", "a", "2") + bulk("GET", "k2"), "$1\r\n1\r\n"},
	} {
		copies.Hold()
		sendTo(t, writer, bulk("SET", "new", "1"))
		pass(srv)
		sendTo(t, c, one.ask)
		for range 100 {
			pass(srv)
		}
		if unread(t, c) > 0 {
			t.Errorf("%s: there is an answer before there are copies", one.name)
		}
		copies.Flow()
		expect(t, c, one.answer)
		expect(t, writer, "+OK\r\n")
	}
}

// pass returns when rounds have ended that had all that was sent before.
func pass(srv *redis.Server) {
	for range 2 { // One may be run in the midst of such a round.
		srv.PassAll()
	}
}

// unread is how many bytes have come that nobody has read.
func unread(t *testing.T, c net.Conn) (n int) {
	t.Helper()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestColdKeysWaitAloneAndComeBackInOrder reads data that is several times
// larger than the memory it may take.
func TestColdKeysWaitAloneAndComeBackInOrder(t *testing.T) {
	const keys, valueBytes = 20_000, 2000
	srv := startServer(t, store.Options{Dir: t.TempDir(), MemoryBytes: 16 << 20, SegmentBytes: 1 << 20}, redis.Config{Loops: 2})
	value := func(i int) string { return fmt.Sprint(i) + strings.Repeat("x", valueBytes-len(fmt.Sprint(i))) }
	load := dial(t, "tcp", srv.Addr().String())
	for i := 0; i < keys; i += 100 {
		var set strings.Builder
		for j := i; j < i+100; j++ {
			set.WriteString(bulk("SET", fmt.Sprint("k", j), value(j)))
		}
		sendTo(t, load, set.String())
		expect(t, load, strings.Repeat("+OK\r\n", 100))
	}
	var wg sync.WaitGroup
	for seed := range 8 {
		c := dial(t, "tcp", srv.Addr().String())
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(seed), 1))
			for range 30 {
				var ask, answer strings.Builder
				for range 1 + r.IntN(60) {
					i := r.IntN(keys)
					switch r.IntN(5) {
					case 0:
						ask.WriteString(bulk("STRLEN", fmt.Sprint("k", i)))
						fmt.Fprintf(&answer, ":%d\r\n", valueBytes)
					case 1:
						ask.WriteString("PING\r\n")
						answer.WriteString("+PONG\r\n")
					default:
						ask.WriteString(bulk("GET", fmt.Sprint("k", i)))
						fmt.Fprintf(&answer, "$%d\r\n%s\r\n", valueBytes, value(i))
					}
				}
				sendTo(t, c, ask.String())
				expect(t, c, answer.String())
			}
		})
	}
	wg.Wait()
}
