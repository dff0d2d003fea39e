package session_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/ostrodb/ostro/client"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/server/session"
	"github.com/ostrodb/ostro/tenant"
	"github.com/ostrodb/ostro/tenant/sched"
	"github.com/ostrodb/ostro/wire"
)

// shared is a server that tenants share; each one's password is its name.
func shared(t *testing.T, o store.Options, tenants map[string]tenant.Wish) (*tenant.Registry, string) {
	t.Helper()
	r, _, addr := sharedBy(t, o, session.Options{}, tenants)
	return r, addr
}

// sharedBy is one with options of the session's.
func sharedBy(t *testing.T, o store.Options, so session.Options, tenants map[string]tenant.Wish) (*tenant.Registry, *session.Server, string) {
	t.Helper()
	st := openStore(t, o)
	book, err := tenant.OpenFile("")
	if err != nil {
		t.Fatal(err)
	}
	r, err := tenant.Open(t.Context(), book, st, slog.New(slog.DiscardHandler), sched.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	for name, wish := range tenants {
		wish.Password = &name
		if err := r.Edit(t.Context(), func(c *tenant.Catalog) error { return c.Create(name, wish, time.Now()) }); err != nil {
			t.Fatal(err)
		}
	}
	so.Access, so.Tenants = access("operator", false), r
	srv, addr := serve(t, st, so)
	return r, srv, addr
}

func member(t *testing.T, addr, name string) *client.Client {
	t.Helper()
	return dial(t, "ostro://"+name+":"+name+"@"+addr, client.Options{})
}

func TestSessionsOfTenantsSeeTheirOwnTables(t *testing.T) {
	two := 2
	_, addr := shared(t, store.Options{}, map[string]tenant.Wish{"anna": {Databases: &two}, "bert": {}})
	operator := dial(t, "ostro://:operator@"+addr, client.Options{})
	anna, bert := member(t, addr, "anna"), member(t, addr, "bert")
	ctx := t.Context()
	for c, value := range map[*client.Client]string{operator: "op", anna: "a", bert: "b"} {
		if _, err := c.Put(ctx, 0, []byte("k"), []byte(value)).Wait(); err != nil {
			t.Fatal(err)
		}
	}
	for c, value := range map[*client.Client]string{operator: "op", anna: "a", bert: "b"} {
		if r, err := c.Get(ctx, 0, []byte("k")).Wait(); err != nil || string(r.Value) != value {
			t.Errorf("%q, %v, want %q", r.Value, err, value)
		}
		n := 0
		for e, err := range c.Scan(ctx, 0, client.ScanOptions{}) {
			if err != nil || string(e.Value) != value {
				t.Errorf("a scan shows %q, %v", e.Value, err)
			}
			n++
		}
		if n != 1 {
			t.Errorf("a scan shows %d records", n)
		}
	}
	if _, err := anna.Get(ctx, 1, []byte("k")).Wait(); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("her second table is not empty: %v", err)
	}
	for _, table := range []int{1, 15, 65535} {
		if _, err := bert.Get(ctx, table, []byte("k")).Wait(); err == nil || !strings.Contains(err.Error(), "no such table") {
			t.Errorf("table %d: %v", table, err)
		}
	}
}

func TestOnlyWhoKnowsANameAndItsPasswordGetsASession(t *testing.T) {
	_, addr := shared(t, store.Options{}, map[string]tenant.Wish{"anna": {}})
	for _, who := range []string{"anna:wrong", "nobody:anna", "anna:", ":anna", "default:anna"} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if _, err := client.Dial(ctx, "ostro://"+who+"@"+addr, client.Options{}); err == nil {
			t.Errorf("%s was let in", who)
		}
		cancel()
	}
}

// Tenants choose the identity of their writes: with another's they would get its results.
func TestTheIdentityOfAWriteIsTheTenants(t *testing.T) {
	_, addr := shared(t, store.Options{}, map[string]tenant.Wish{"anna": {}, "bert": {}})
	for i, name := range []string{"anna", "bert"} {
		c := rawSession(t, addr)
		if err := greetAs(c, name, name); err != nil {
			t.Fatal(err)
		}
		more := binary.LittleEndian.AppendUint64(nil, uint64(i+1))
		if _, err := c.Write(frameOf(1, wire.Op{Code: wire.OpAdd, Flags: wire.FlagOnce, Sequence: 1, Key: []byte("n"), Arg: more})); err != nil {
			t.Fatal(err)
		}
		_, body, err := readRaw(c)
		if err != nil {
			t.Fatal(err)
		}
		rs, err := wire.DecodeResults(body)
		if err != nil {
			t.Fatal(err)
		}
		var r wire.Result
		if err := rs.Next(&r); err != nil || r.Status != wire.OK || string(r.Value) != string(more) {
			t.Errorf("%s added %d and was told %s %d, %v", name, i+1, r.Status, r.Value, err)
		}
	}
}

func TestSessionsOverALimitAreToldSo(t *testing.T) {
	few, little := int64(10), int64(1000)
	r, addr := shared(t, store.Options{}, map[string]tenant.Wish{"anna": {Operations: &few}, "bert": {Bytes: &little}, "carl": {Connections: &few}})
	ctx := t.Context()
	anna := member(t, addr, "anna")
	var futures []*client.Future
	for i := range 200 {
		futures = append(futures, anna.Get(ctx, 0, fmt.Append(nil, i)))
	}
	refused := 0
	for _, f := range futures {
		if _, err := f.Wait(); err != nil && strings.Contains(err.Error(), "tenant anna has reached its limit of 10 operations a second") {
			refused++
		}
	}
	if refused < 150 {
		t.Errorf("%d of 200 operations were refused", refused)
	}
	bert := member(t, addr, "bert")
	if _, err := bert.Put(ctx, 0, []byte("a"), make([]byte, 1000)).Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := bert.Put(ctx, 0, []byte("b"), nil).Wait(); err == nil || !strings.Contains(err.Error(), "1000 bytes") {
		t.Errorf("more than its bytes: %v", err)
	}
	if _, err := bert.Delete(ctx, 0, []byte("a")).Wait(); err != nil {
		t.Error(err)
	}
	if _, err := bert.Put(ctx, 0, []byte("b"), nil).Wait(); err != nil {
		t.Error(err)
	}
	for _, u := range r.Usage() {
		if u.Name == "bert" && (u.Operations != 4 || u.Refused != 1 || u.BytesIn < 1000 || u.BytesOut == 0) {
			t.Errorf("bert's account: %+v", u)
		}
	}
}

func TestAWriteThatWaitsIsNotMadeOnceItsTenantIsDeleted(t *testing.T) {
	gate := &testGate{changed: make(chan struct{})}
	all, coming := session.Alone().Routing(), *session.Alone().Routing()
	coming.Arriving = view.RangesOf(view.Whole)
	gate.set(&coming)
	r, srv, addr := sharedBy(t, store.Options{}, session.Options{Gate: gate}, map[string]tenant.Wish{"anna": {}, "bert": {}})
	ctx := t.Context()
	anna, bert := member(t, addr, "anna").Put(ctx, 0, []byte("k"), []byte("v")), member(t, addr, "bert").Put(ctx, 0, []byte("k"), []byte("v"))
	await.True(t, "both wait", func() bool { return srv.Metrics().Waited == 2 })
	if err := r.Edit(ctx, func(c *tenant.Catalog) error { return c.Delete("anna") }); err != nil {
		t.Fatal(err)
	}
	gate.set(all)
	if _, err := anna.Wait(); err == nil || !strings.Contains(err.Error(), "the tenant was deleted") {
		t.Errorf("the write of a tenant that was deleted: %v", err)
	}
	if _, err := bert.Wait(); err != nil {
		t.Error(err)
	}
}

// usageOf is what a tenant uses.
func usageOf(r *tenant.Registry, name string) (u tenant.Usage) {
	for _, u = range r.Usage() {
		if u.Name == name {
			break
		}
	}
	return u
}

func TestSessionsOfATenantTogetherHoldOnlySoMuchOfUnfinishedFrames(t *testing.T) {
	r, addr := shared(t, store.Options{}, map[string]tenant.Wish{"anna": {}, "bert": {}})
	anna := r.Account("anna")
	held := func() int64 { return usageOf(r, "anna").Input }
	const others = tenant.MaxInputBytes - 2<<20
	if err := anna.Hold(others); err != nil { // As other connections do.
		t.Fatal(err)
	}
	frame := putFrame(1, "k", strings.Repeat("x", 1<<20))
	begin := func(name string, frame []byte) net.Conn {
		t.Helper()
		c := rawSession(t, addr)
		if err := greetAs(c, name, name); err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write(frame[:len(frame)-1]) // It may fail half way.
		return c
	}
	begun := begin("anna", frame)
	await.True(t, "the account tells of the frame", func() bool { return held() >= others+int64(len(frame)) })

	long := putFrame(1, "k", strings.Repeat("x", 4<<20))
	typ, body, err := readRaw(begin("anna", long))
	if err != nil || typ != wire.TypeGoodbye {
		t.Fatalf("who is over the limit gets a %s, %v", typ, err)
	}
	if bye, err := wire.DecodeGoodbye(body); err != nil || !strings.Contains(bye.Text, "tenant anna has reached its limit of 268435456 bytes that its clients have sent of unfinished commands and transactions") {
		t.Errorf("who is over the limit is told %v, %v", bye, err)
	}
	for c, last := range map[net.Conn][]byte{begin("bert", long): long, begun: frame} {
		if _, err := c.Write(last[len(last)-1:]); err != nil {
			t.Fatal(err)
		}
		if typ, _, err := readRaw(c); err != nil || typ != wire.TypeResults {
			t.Errorf("a frame of %d bytes is answered with a %s, %v", len(last), typ, err)
		}
	}
	await.True(t, "what was executed is given back", func() bool { return held() == others })
	again := begin("anna", frame)
	await.True(t, "the account tells of the next frame", func() bool { return held() > others })
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	await.True(t, "what was closed is given back", func() bool { return held() == others })
}

func TestSessionsOfATenantTogetherLeaveOnlySoMuchUnread(t *testing.T) {
	r, addr := shared(t, store.Options{}, map[string]tenant.Wish{"anna": {}, "bert": {}})
	anna := r.Account("anna")
	unread := func() int64 { return usageOf(r, "anna").Unread }
	const long = 12 << 20
	enter := func(name string) net.Conn {
		t.Helper()
		c := rawSession(t, addr)
		if err := greetAs(c, name, name); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(putFrame(1, "k", strings.Repeat("x", long))); err != nil {
			t.Fatal(err)
		}
		if typ, _, err := readRaw(c); err != nil || typ != wire.TypeResults {
			t.Fatalf("a put is answered with a %s, %v", typ, err)
		}
		return c
	}
	ask := func(c net.Conn) {
		t.Helper()
		if _, err := c.Write(readFrame(1, "k")); err != nil {
			t.Fatal(err)
		}
	}
	slow, late, other := enter("anna"), enter("anna"), enter("bert")
	if err := late.(*net.TCPConn).SetReadBuffer(64 << 10); err != nil { // The kernel is not to take all of its answer before it is cut off.
		t.Fatal(err)
	}
	ask(slow)
	await.True(t, "the account tells of the answer", func() bool { return unread() >= long })

	// As other connections do. They reach the limit without the slow one, of whose answer the kernel may have taken any part by now.
	var told int64
	const others = tenant.MaxUnreadBytes
	anna.Unread(&told, others)
	ask(late)
	await.True(t, "who is over the limit is cut off", func() bool { return usageOf(r, "anna").Connections == 1 })
	if _, _, err := readRaw(late); err == nil {
		t.Error("who is over the limit gets its answer")
	}
	ask(other)
	for _, c := range []net.Conn{slow, other} {
		if typ, body, err := readRaw(c); err != nil || typ != wire.TypeResults || len(body) < long {
			t.Errorf("a read is answered with a %s of %d bytes, %v", typ, len(body), err)
		}
	}
	await.True(t, "what was read is given back", func() bool { return unread() == others })
}
