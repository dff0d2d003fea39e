package redis_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/tenant"
)

func TestTransactionsOfATenantTogetherHoldOnlySoMuch(t *testing.T) {
	addr, operator := startWithTenants(t, store.Options{}, "anna password anna", "bert password bert")
	const long = 15 << 20
	value := strings.Repeat("x", long)
	queue := func(c *rawClient) (refusal string) {
		says(t, c, "OK", "multi")
		for range 4 {
			if r := mustDo(t, c, "set", "k", value); r.text != "QUEUED" {
				return r.raw
			}
		}
		return ""
	}
	var holding []*rawClient
	late := as(t, addr, "anna")
	refusal := queue(late)
	for ; refusal == ""; refusal = queue(late) {
		if holding = append(holding, late); len(holding)*4*long > tenant.MaxInputBytes {
			t.Fatalf("%d transactions make the server hold %d bytes", len(holding), len(holding)*4*long)
		}
		late = as(t, addr, "anna")
	}
	if !strings.HasPrefix(refusal, "-QUOTA tenant anna has reached its limit of 268435456 bytes that its clients have sent of unfinished commands and transactions: ") {
		t.Errorf("who is over the limit is told %.200q", refusal)
	}
	if r := mustDo(t, late, "exec"); !strings.HasPrefix(r.raw, "-EXECABORT") {
		t.Errorf("EXEC of what was refused says %.100q", r.raw)
	}
	if refusal := queue(as(t, addr, "bert")); refusal != "" {
		t.Errorf("another tenant is told %.200q", refusal)
	}
	says(t, holding[0], "OK", "discard")
	if refusal := queue(late); refusal != "" {
		t.Errorf("what DISCARD gives back is not there for another: %.200q", refusal)
	}
	for _, c := range append(holding[1:], late) {
		if r := mustDo(t, c, "exec"); !strings.HasPrefix(r.raw, "*4\r\n+OK") {
			t.Errorf("EXEC says %.100q", r.raw)
		}
	}
	awaitInput(t, operator, "anna", 0)
}

func TestWatchedKeysCountForTheirTenant(t *testing.T) {
	addr, operator := startWithTenants(t, store.Options{}, "anna password anna")
	watch := func(c *rawClient) (refusal string) {
		for i := range 10 {
			args := []string{"watch"}
			for n := range 100 {
				args = append(args, fmt.Sprint(i, ":", n, ":", strings.Repeat("k", 48<<10)))
			}
			if r := mustDo(t, c, args...); r.text != "OK" {
				return r.raw
			}
		}
		return ""
	}
	clients := []*rawClient{as(t, addr, "anna")}
	refusal := watch(clients[0])
	for refusal == "" {
		if len(clients) > 5 {
			t.Fatal("500 MB of keys are watched")
		}
		clients = append(clients, as(t, addr, "anna"))
		refusal = watch(clients[len(clients)-1])
	}
	if !strings.HasPrefix(refusal, "-QUOTA tenant anna has reached its limit") {
		t.Errorf("who watches too much is told %.200q", refusal)
	}
	for i, c := range clients {
		if i == 0 {
			must(t, c.conn.Close())
		} else {
			says(t, c, "OK", "unwatch")
		}
	}
	awaitInput(t, operator, "anna", 0)
}

func TestClientsOfATenantTogetherLeaveOnlySoMuchUnread(t *testing.T) {
	addr, operator := startWithTenants(t, store.Options{}, "anna password anna", "bert password bert")
	const long, gets = 8 << 20, 8
	value := strings.Repeat("x", long)
	for _, name := range []string{"anna", "bert"} {
		says(t, as(t, addr, name), "OK", "set", "k", value)
	}
	unread := func() int64 { return usageOf(t, operator, "anna").Unread }
	slow := as(t, addr, "anna") // It reads later, and gets all that it asked for.
	sendTo(t, slow.conn, strings.Repeat(bulk("GET", "k"), gets))
	await.True(t, "replies wait", func() bool { return unread() > long })

	there := func(c *rawClient) bool { _, is := waitingInput(t, operator, c); return is }
	var idle []*rawClient
	var gone bool
	for n := 0; !gone; n++ {
		if n > 100 {
			t.Fatalf("%d clients left %d bytes unread", n, unread())
		}
		c, before := as(t, addr, "anna"), unread()
		_, _ = c.conn.Write([]byte(strings.Repeat(bulk("GET", "k"), gets)))
		await.True(t, "replies wait, or the client is gone", func() bool { gone = !there(c); return gone || unread() > before })
		idle = append(idle, c)
	}
	if got := unread(); got > tenant.MaxUnreadBytes {
		t.Errorf("clients leave %d bytes unread", got)
	}
	for _, other := range []*rawClient{as(t, addr, "bert"), as(t, addr, "anna")} {
		says(t, other, "PONG", "ping")
	}
	says(t, as(t, addr, "bert"), value, "get", "k")
	for range gets {
		r, err := slow.receive()
		must(t, err)
		if r.text != value {
			t.Fatalf("who reads late gets %d bytes", len(r.text))
		}
	}
	for _, c := range idle {
		must(t, c.conn.Close())
	}
	await.True(t, "nothing is unread", func() bool { return unread() == 0 })
}
