package session_test

import (
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/tenant"
	"github.com/ostrodb/ostro/tenant/library/librarytest"
	"github.com/ostrodb/ostro/wire"
)

// asTenant opens a session that says what the test likes.
func asTenant(t *testing.T, addr, name string) net.Conn {
	t.Helper()
	c := rawSession(t, addr)
	if err := greetAs(c, name, name); err != nil {
		t.Fatal(err)
	}
	return c
}

// tell sends one operation of a client and returns what it is told.
func tell(c net.Conn, b wire.Batch, op wire.Op) (wire.Result, error) {
	b.View = 1
	frame, start := wire.BeginBatch(nil, &b)
	if _, err := c.Write(wire.EndBatch(wire.AppendOp(frame, &op, 0), start, 1)); err != nil {
		return wire.Result{}, err
	}
	kind, body, err := readRaw(c)
	if err != nil {
		return wire.Result{}, err
	}
	if kind == wire.TypeGoodbye {
		bye, err := wire.DecodeGoodbye(body)
		return wire.Result{}, errors.Join(bye, err)
	}
	rs, err := wire.DecodeResults(body)
	if err != nil {
		return wire.Result{}, err
	}
	var r wire.Result
	err = rs.Next(&r)
	return r, err
}

// A client that confirms nothing has the server keep all its results. Those are the tenant's bytes, and deletions, which
// are never refused for bytes, are for results.
func TestResultsThatNobodyConfirmsAreTheTenants(t *testing.T) {
	limit, clock := int64(6_000_000), new(atomic.Int64)
	clock.Store(1_000_000)
	keep := time.Second
	r, addr := shared(t, store.Options{Now: clock.Load, KeepResults: keep}, map[string]tenant.Wish{"anna": {Bytes: &limit}, "bert": {}})
	anna, bert := asTenant(t, addr, "anna"), asTenant(t, addr, "bert")
	deletion := func(seq int) wire.Op {
		return wire.Op{Code: wire.OpDelete, Flags: wire.FlagOnce, Sequence: uint64(seq), Key: []byte("nothing")}
	}
	kept := func() int64 {
		for _, u := range r.Usage() {
			if u.Name == "anna" {
				return u.Results
			}
		}
		return -1
	}
	n := 0
	for ; n < 100_000; n++ {
		res, err := tell(anna, wire.Batch{Client: 1}, deletion(n))
		if err != nil {
			t.Fatal(err)
		}
		if res.Status == wire.Refused {
			if !strings.Contains(string(res.Value), "1500000 bytes for results that clients have not confirmed") {
				t.Errorf("it was told %q", res.Value)
			}
			break
		}
	}
	if n == 100_000 || kept() < limit/4 || kept() > limit/4+1000 {
		t.Fatalf("%d deletions went through, %d bytes of results are kept", n, kept())
	}
	if res, err := tell(anna, wire.Batch{Client: 1}, deletion(0)); err != nil || res.Status != wire.NotFound {
		t.Errorf("another attempt of a deletion that was run: %s %q, %v", res.Status, res.Value, err)
	}
	if res, err := tell(bert, wire.Batch{Client: 1}, deletion(0)); err != nil || res.Status != wire.NotFound {
		t.Errorf("another tenant was told %s %q, %v", res.Status, res.Value, err)
	}
	for seq, some := 0, make([]byte, 100_000); ; seq++ {
		if res, err := tell(anna, wire.Batch{Client: 1}, wire.Op{Code: wire.OpPut, Key: []byte{byte(seq)}, Arg: some}); err != nil || res.Status == wire.Refused {
			if seq < 43 || seq > 46 || err != nil {
				t.Errorf("%d records of 100,000 bytes went in beside the results, %v", seq, err)
			}
			break
		}
	}
	if res, err := tell(anna, wire.Batch{Client: 1, Acked: uint64(n)}, deletion(n)); err != nil || res.Status != wire.NotFound {
		t.Errorf("after it confirmed them it was told %s %q, %v", res.Status, res.Value, err)
	}
	if kept() > 1000 {
		t.Errorf("%d bytes are kept of what was confirmed", kept())
	}
	clock.Add(3 * keep.Milliseconds())
	await.True(t, "nothing is kept of a client that went", func() bool { return kept() == 0 })
}

// What is remembered of a client is charged, too: or a tenant would come as another one with each batch.
func TestATenantCannotBeAnyNumberOfClients(t *testing.T) {
	limit := int64(1_000_000)
	_, addr := shared(t, store.Options{}, map[string]tenant.Wish{"anna": {Bytes: &limit}})
	anna := asTenant(t, addr, "anna")
	for id := range uint64(100_000) {
		_, err := tell(anna, wire.Batch{Client: id, Acked: 1}, wire.Op{Code: wire.OpPing})
		if err == nil {
			continue
		}
		if bye := new(wire.Goodbye); !errors.As(err, &bye) || bye.Reason != wire.ReasonTooMany || id < 1000 {
			t.Errorf("after %d clients: %v", id, err)
		}
		return
	}
	t.Error("100,000 clients were remembered")
}

// A write was run, but its answer was lost. Who is over a limit by then must not be told that nothing was done.
func TestAnotherAttemptIsAnsweredThoughTheTenantIsOverItsLimit(t *testing.T) {
	limit, few := int64(5000), int64(30)
	_, addr := shared(t, store.Options{}, map[string]tenant.Wish{"anna": {Bytes: &limit}, "bert": {Operations: &few}})
	add := wire.Op{Code: wire.OpAdd, Flags: wire.FlagOnce, Sequence: 1, Key: []byte("n"), Arg: binary.LittleEndian.AppendUint64(nil, 7)}
	many := wire.Op{Code: wire.OpMultiPut, Flags: wire.FlagOnce, Sequence: 2, Arg: wire.AppendPut(nil, &wire.Put{Key: []byte("m"), Value: []byte("v")})}
	for name, more := range map[string]wire.Op{
		"anna": {Code: wire.OpPut, Key: []byte("big"), Arg: make([]byte, 6000)},
		"bert": {Code: wire.OpPing},
	} {
		c := asTenant(t, addr, name)
		for _, op := range []wire.Op{add, many} {
			if res, err := tell(c, wire.Batch{Client: 1}, op); err != nil || res.Status != wire.OK {
				t.Fatalf("%s: %s %q, %v", name, res.Status, res.Value, err)
			}
		}
		for refused := false; !refused; {
			res, err := tell(c, wire.Batch{Client: 1}, more)
			if err != nil {
				t.Fatal(err)
			}
			refused = res.Status == wire.Refused
		}
		for _, op := range []wire.Op{add, many} {
			for range 10 {
				if res, err := tell(c, wire.Batch{Client: 1}, op); err != nil || res.Status != wire.OK || op.Code == wire.OpAdd && res.Value[0] != 7 {
					t.Fatalf("%s asked again for %s and was told %s %q, %v", name, op.Code, res.Status, res.Value, err)
				}
			}
		}
	}
}

// The response of a function with an identity is kept though it writes nothing.
func TestResponsesThatNobodyConfirmsAreTheTenants(t *testing.T) {
	limit := int64(1_000_000)
	addr := sharedCallers(t, map[string]tenant.Wish{"anna": {Bytes: &limit}})
	if err := member(t, addr, "anna").InstallModule(t.Context(), "echo", librarytest.Module(strings.Repeat("x", 4000), "echo"), false); err != nil {
		t.Fatal(err)
	}
	anna := asTenant(t, addr, "anna")
	call := func(seq int) wire.Op {
		return wire.Op{Code: wire.OpInvoke, Flags: wire.FlagOnce, Sequence: uint64(seq), Key: []byte("k"), Arg: wire.AppendInvoke(nil, "echo", nil, nil)}
	}
	for n := range 1000 {
		res, err := tell(anna, wire.Batch{Client: 1}, call(n))
		if err != nil {
			t.Fatal(err)
		}
		if res.Status == wire.OK {
			continue
		}
		if res.Status != wire.Refused || n < 200 || n > 260 || !strings.Contains(string(res.Value), "results that clients have not confirmed") {
			t.Errorf("call %d was told %s %q", n, res.Status, res.Value)
		}
		if res, err := tell(anna, wire.Batch{Client: 1}, call(0)); err != nil || res.Status != wire.OK || len(res.Value) != 4000 {
			t.Errorf("another attempt of the first: %s, %d bytes, %v", res.Status, len(res.Value), err)
		}
		return
	}
	t.Error("1,000 responses of 4,000 bytes are kept for a tenant that may have 1,000,000 bytes")
}

// What clients have is looked up only when they say something new; what they had stays so, whoever else says what on
// the connection.
func TestWhatClientsHaveIsNotRunAgainHoweverOftenTheySaySo(t *testing.T) {
	clock := new(atomic.Int64)
	clock.Store(1_000_000)
	keep := time.Second
	_, addr := shared(t, store.Options{Now: clock.Load, KeepResults: keep}, map[string]tenant.Wish{"anna": {}})
	c := asTenant(t, addr, "anna")
	run := func(client, acked, seq uint64, want bool) {
		t.Helper()
		r, err := tell(c, wire.Batch{Client: client, Acked: acked}, wire.Op{Code: wire.OpPut, Flags: wire.FlagOnce, Sequence: seq, Key: []byte("key"), Arg: []byte("value")})
		if err != nil {
			t.Fatal(err)
		}
		if (r.Status == wire.OK) != want || !want && !strings.Contains(string(r.Value), "answered before") {
			t.Errorf("client %d, which has all below %d, is told %v %q of %d", client, acked, r.Status, r.Value, seq)
		}
	}
	for range 3 { // It is forgotten in between, or not.
		run(1, 5, 6, true)
		run(1, 5, 3, false)
		run(1, 5, 4, false)
		run(2, 2, 3, true)
		run(2, 2, 1, false)
		run(1, 4, 4, false)
		run(1, 5, 4, false)
		clock.Add(3 * keep.Milliseconds())
	}
}
