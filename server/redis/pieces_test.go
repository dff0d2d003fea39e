package redis

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ostrodb/ostro/tenant"
	"github.com/ostrodb/ostro/tenant/sched"
)

// become makes the bench's client a tenant's.
func (b *bench) become(t *testing.T, name string) {
	t.Helper()
	book, err := tenant.OpenFile("")
	if err != nil {
		t.Fatal(err)
	}
	r, err := tenant.Open(t.Context(), book, b.c.srv.store, slog.New(slog.DiscardHandler), sched.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	wish := tenant.Wish{Password: &name}
	if err := r.Edit(t.Context(), func(c *tenant.Catalog) error { return c.Create(name, wish, time.Now()) }); err != nil {
		t.Fatal(err)
	}
	account, ok := r.Authenticate([]byte(name), []byte(name))
	if !ok {
		t.Fatal("the tenant is not known")
	}
	if err := b.c.conn.become(account); err != nil {
		t.Fatal(err)
	}
}

func TestATenantsCommandOnManyKeysMakesWayForOthers(t *testing.T) {
	b := newBench(t)
	b.become(t, "anna")
	const keys = 10_000
	var names, values strings.Builder
	for i := range keys {
		fmt.Fprintf(&names, " key:%d", i)
		if i%3 == 0 {
			values.WriteString("$-1\r\n")
			continue
		}
		value := fmt.Sprint(i)
		b.do(words(fmt.Sprintf("set key:%d %s", i, value)))
		fmt.Fprintf(&values, "$%d\r\n%s\r\n", len(value), value)
	}
	there := fmt.Sprintf(":%d\r\n", keys-(keys+2)/3)
	for _, s := range []struct{ line, want string }{
		{"mget" + names.String(), fmt.Sprintf("*%d\r\n%s", keys, values.String())},
		{"exists" + names.String(), there},
		{"touch" + names.String(), there},
		{"del" + names.String(), there},
		{"unlink" + names.String(), ":0\r\n"},
	} {
		if turns, want := b.turns(s.line), (keys-1)/pieceKeys; turns != want {
			t.Errorf("%.10s lets others have %d turns, want %d", s.line, turns, want)
		}
		if got := string(b.c.out.Bytes()); got != s.want {
			t.Errorf("%.10s answers %.60q, want %.60q", s.line, got, s.want)
		}
	}
}

func TestACommandInPiecesThatFailsAnswersOnce(t *testing.T) {
	b := newBench(t)
	b.become(t, "anna")
	value := strings.Repeat("x", 1<<20)
	b.do(words("set k " + value))
	line := "mget" + strings.Repeat(" k", tenant.MaxKeys+1) // Its first piece is far more than a tenant's reply.
	b.turns(line)
	if got := string(b.c.out.Bytes()); got != "-"+errReplyValues+"\r\n" {
		t.Errorf("it answers %.60q", got)
	}
	if b.turns("mget k k"); !strings.HasPrefix(string(b.c.out.Bytes()), "*2\r\n$1048576\r\n") {
		t.Errorf("the next one answers %.60q", b.c.out.Bytes())
	}
	b.do(words("set k " + value[:4000])) // Now all of its pieces together are.
	b.turns("mget" + strings.Repeat(" k", 10*pieceKeys))
	if got := string(b.c.out.Bytes()); got != "-"+errReplyValues+"\r\n" {
		t.Errorf("it answers %.60q", got)
	}
}
