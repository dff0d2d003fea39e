package redis_test

import (
	"fmt"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/server/redis"
)

const (
	announcedBytes = 60 << 20
	begunBytes     = 40 << 20
)

// begin sends most of a long command, and waits until the server has that or has closed the connection.
func begin(t *testing.T, operator, c *rawClient) (taken bool) {
	t.Helper()
	_, _ = c.conn.Write([]byte("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$" + strconv.Itoa(announcedBytes) + "\r\n" + strings.Repeat("x", begunBytes))) // It may fail half way.
	await.True(t, "what was sent is there, or the client is gone", func() bool {
		waiting, there := waitingInput(t, operator, c)
		taken = waiting > begunBytes
		return taken || !there
	})
	return taken
}

// end sends the rest of what begin began.
func end(t *testing.T, c *rawClient) {
	t.Helper()
	sendTo(t, c.conn, strings.Repeat("x", announcedBytes-begunBytes)+"\r\n")
	r, err := c.receive()
	must(t, err)
	if !strings.HasPrefix(r.raw, "-ERR string exceeds maximum allowed size") {
		t.Fatalf("a long command is answered with %.100q", r.raw)
	}
}

var queryBytes = regexp.MustCompile(` qbuf=(\d+) `)

// waitingInput is what the server keeps of a client's input, if it has that client.
func waitingInput(t *testing.T, operator, c *rawClient) (bytes int, there bool) {
	t.Helper()
	for _, line := range strings.Split(mustDo(t, operator, "client", "list").text, "\n") {
		if strings.Contains(line, " addr="+c.conn.LocalAddr().String()+" ") {
			bytes, err := strconv.Atoi(queryBytes.FindStringSubmatch(line)[1])
			must(t, err)
			return bytes, true
		}
	}
	return 0, false
}

func TestTheConnectionsOfATenantTogetherHoldOnlySoMuchThatCannotBeExecutedYet(t *testing.T) {
	addr, operator := startWithTenants(t, store.Options{}, "anna password anna", "bert password bert")
	var holding []*rawClient
	late := as(t, addr, "anna")
	for begin(t, operator, late) {
		if holding = append(holding, late); len(holding)*begunBytes > 256<<20 {
			t.Fatalf("a tenant's %d connections make the server hold %d bytes", len(holding), len(holding)*begunBytes)
		}
		late = as(t, addr, "anna")
	}
	if got := expectEnd(t, late.conn); !strings.HasPrefix(got, "-QUOTA tenant anna has reached its limit of 268435456 bytes that its clients have sent of unfinished commands and transactions: ") {
		t.Errorf("who is over the limit is told %.200q", got)
	}
	for _, other := range []*rawClient{as(t, addr, "bert"), operator} {
		says(t, other, "OK", "set", "k", strings.Repeat("x", 1<<20))
	}
	if !begin(t, operator, as(t, addr, "bert")) {
		t.Error("another tenant is refused what it sends")
	}
	says(t, as(t, addr, "anna"), "PONG", "ping")

	end(t, holding[0])
	if !begin(t, operator, holding[0]) {
		t.Error("what a command that was executed had is not given back")
	}
	must(t, holding[1].conn.Close())
	awaitInput(t, operator, "anna", (len(holding)-1)*announcedBytes)
	if !begin(t, operator, as(t, addr, "anna")) {
		t.Error("what a connection had that was closed is not given back")
	}
}

func TestWhatAConnectionHasSentIsItsTenantsForAsLongAsItIsThat(t *testing.T) {
	addr, operator := startWithTenants(t, store.Options{}, "anna password anna", "bert password bert")
	c := as(t, addr, "anna")
	if !begin(t, operator, c) {
		t.Fatal("it is refused")
	}
	awaitInput(t, operator, "anna", announcedBytes)
	sendTo(t, c.conn, strings.Repeat("x", announcedBytes-begunBytes)+"\r\n"+bulk("AUTH", "bert", "bert"))
	for range 2 {
		_, err := c.receive()
		must(t, err)
	}
	awaitInput(t, operator, "anna", 0)
	if !begin(t, operator, c) {
		t.Fatal("it is refused")
	}
	awaitInput(t, operator, "bert", announcedBytes)
	must(t, c.conn.Close())
	awaitInput(t, operator, "bert", 0)
	if got := usageOf(t, operator, "anna").Input; got != 0 {
		t.Errorf("who the connection belonged to before has %d bytes", got)
	}
}

// awaitInput waits until an account has about so many bytes of unfinished commands: buffers are a little longer.
func awaitInput(t *testing.T, operator *rawClient, name string, want int) {
	t.Helper()
	await.True(t, fmt.Sprint("the account of ", name, " has ", want, " bytes"), func() bool {
		got := int(usageOf(t, operator, name).Input)
		return want <= got && got <= want+want/8
	})
}

func TestAConnectionKeepsNothingOfALongCommandThatWasExecuted(t *testing.T) {
	const clients, long = 16, 4 << 20
	addr := startOstro(t, redis.Config{})
	key := strings.Repeat("x", long)
	before := heap()
	for range clients {
		says(t, dialRaw(t, addr), "", "exists", key)
	}
	await.True(t, "the heap is small again", func() bool { return heap() < before+clients*long/2 })
	runtime.KeepAlive(key)
}

// heap is how many bytes of the heap are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
