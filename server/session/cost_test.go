package session_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/tenant"
	"github.com/ostrodb/ostro/wire"
)

func operationsOf(r *tenant.Registry, name string) int64 {
	for _, u := range r.Usage() {
		if u.Name == name {
			return u.Operations
		}
	}
	return -1
}

func TestAnOperationOnManyKeysIsAsMany(t *testing.T) {
	few := int64(100)
	r, addr := shared(t, store.Options{}, map[string]tenant.Wish{"anna": {}, "bert": {Operations: &few}})
	anna, bert := asTenant(t, addr, "anna"), asTenant(t, addr, "bert")
	var gets, puts []byte
	for i := range 101 {
		gets = wire.AppendKey(gets, fmt.Append(nil, i))
		puts = wire.AppendPut(puts, &wire.Put{Key: fmt.Append(nil, i)})
	}
	for _, op := range []wire.Op{{Code: wire.OpMultiGet, Arg: gets}, {Code: wire.OpMultiPut, Arg: puts}} {
		was := operationsOf(r, "anna")
		if res, err := tell(anna, wire.Batch{}, op); err != nil || res.Status != wire.OK || operationsOf(r, "anna")-was != 101 {
			t.Errorf("%s of 101 keys is %d operations, %s, %v", op.Code, operationsOf(r, "anna")-was, res.Status, err)
		}
		if res, err := tell(bert, wire.Batch{}, op); err != nil || res.Status != wire.Refused || !strings.Contains(string(res.Value), "101 keys at once") {
			t.Errorf("%s of more keys than a second has operations: %s %q, %v", op.Code, res.Status, res.Value, err)
		}
	}
	// What is refused for itself does not take others of its batch with it.
	if _, err := bert.Write(frameOf(1, wire.Op{Code: wire.OpPing}, wire.Op{Code: wire.OpMultiGet, Arg: gets}, wire.Op{Code: wire.OpPing})); err != nil {
		t.Fatal(err)
	}
	_, body, err := readRaw(bert)
	if err != nil {
		t.Fatal(err)
	}
	rs, err := wire.DecodeResults(body)
	if err != nil {
		t.Fatal(err)
	}
	told := map[uint32]wire.Status{}
	for range 3 {
		var res wire.Result
		if err := rs.Next(&res); err != nil {
			t.Fatal(err)
		}
		told[res.Tag] = res.Status
	}
	if told[0] != wire.OK || told[1] != wire.Refused || told[2] != wire.OK {
		t.Errorf("a batch with one operation too large was told %v", told)
	}
}

func TestAnOperationOfATenantHasSoManyKeysAndABatchSoManyOperations(t *testing.T) {
	_, addr := shared(t, store.Options{}, map[string]tenant.Wish{"anna": {}})
	anna := asTenant(t, addr, "anna")
	for n, want := range map[int]wire.Status{tenant.MaxKeys: wire.OK, tenant.MaxKeys + 1: wire.TooLarge} {
		var gets, puts []byte
		for i := range n {
			gets = wire.AppendKey(gets, fmt.Append(nil, i))
			puts = wire.AppendPut(puts, &wire.Put{Key: fmt.Append(nil, i)})
		}
		for _, op := range []wire.Op{{Code: wire.OpMultiGet, Arg: gets}, {Code: wire.OpMultiPut, Arg: puts}} {
			if res, err := tell(anna, wire.Batch{}, op); err != nil || res.Status != want {
				t.Errorf("%s of %d keys: %s %.60q, %v", op.Code, n, res.Status, res.Value, err)
			}
		}
	}
	keys := make([][]byte, 3*tenant.MaxKeys)
	for i := range keys {
		keys[i] = fmt.Append(nil, i)
	}
	values, err := member(t, addr, "anna").MultiGet(t.Context(), 0, keys)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range values {
		if there := v.Err == nil; there != (i < tenant.MaxKeys) {
			t.Fatalf("of many keys at once number %d is read as %v", i, v.Err)
		}
	}
	pings := make([]wire.Op, 8193)
	for i := range pings {
		pings[i].Code = wire.OpPing
	}
	if _, err := anna.Write(frameOf(1, pings...)); err != nil {
		t.Fatal(err)
	}
	for {
		kind, body, err := readRaw(anna)
		if err != nil {
			t.Fatal(err)
		}
		if kind == wire.TypeGoodbye {
			if bye, err := wire.DecodeGoodbye(body); err != nil || !strings.Contains(bye.Text, "send several") {
				t.Errorf("a batch of too many operations: %v, %v", bye, err)
			}
			break
		}
	}
}

// A table that is small among others' is scanned in pages that may be empty, each of them short.
func TestAScanOfASmallTableIsManyShortPages(t *testing.T) {
	r, addr := shared(t, store.Options{}, map[string]tenant.Wish{"anna": {}, "bert": {}})
	bert, anna := asTenant(t, addr, "bert"), asTenant(t, addr, "anna")
	const others = 120_000
	for i := 0; i < others; {
		var puts []byte
		for range 2000 {
			puts = wire.AppendPut(puts, &wire.Put{Key: fmt.Append(nil, i)})
			i++
		}
		if res, err := tell(bert, wire.Batch{}, wire.Op{Code: wire.OpMultiPut, Arg: puts}); err != nil || res.Status != wire.OK {
			t.Fatal(res.Status, err)
		}
	}
	if res, err := tell(anna, wire.Batch{}, wire.Op{Code: wire.OpPut, Key: []byte("mine")}); err != nil || res.Status != wire.OK {
		t.Fatal(res.Status, err)
	}
	was, pages, seen := operationsOf(r, "anna"), 0, 0
	for s := (wire.Scan{Last: uint64(^record.Place(0)), Count: 1000}); ; pages++ {
		res, err := tell(anna, wire.Batch{}, wire.Op{Code: wire.OpScan, Arg: wire.AppendScan(nil, &s)})
		if err != nil || res.Status != wire.OK {
			t.Fatalf("%s %q, %v", res.Status, res.Value, err)
		}
		p, records, err := wire.DecodePage(res.Value)
		if err != nil {
			t.Fatal(err)
		}
		if len(records) > 0 {
			seen++
		}
		if s.Cursor = p.Cursor; s.Cursor == 0 {
			break
		}
	}
	if pages < 1 || seen != 1 {
		t.Errorf("%d pages before the last, %d of all with a record", pages, seen)
	}
	if paid := operationsOf(r, "anna") - was; paid < 100 {
		t.Errorf("a walk through all of the index was %d operations", paid)
	}
}

func TestAValueOfATenantIsBounded(t *testing.T) {
	_, addr := shared(t, store.Options{}, map[string]tenant.Wish{"anna": {}})
	anna := asTenant(t, addr, "anna")
	largest := make([]byte, tenant.MaxValueBytes)
	for i, s := range []struct {
		op   wire.Op
		want wire.Status
	}{
		{wire.Op{Code: wire.OpPut, Arg: largest}, wire.OK},
		{wire.Op{Code: wire.OpPut, Arg: append(largest, 1)}, wire.TooLarge},
		{wire.Op{Code: wire.OpPut, Flags: wire.FlagOnce, Sequence: 1, Arg: append(largest, 1)}, wire.TooLarge},
		{wire.Op{Code: wire.OpAppend, Arg: []byte("x")}, wire.TooLarge},
		{wire.Op{Code: wire.OpRead}, wire.OK},
	} {
		s.op.Key = []byte("k")
		if res, err := tell(anna, wire.Batch{Client: 1}, s.op); err != nil || res.Status != s.want {
			t.Errorf("%d: %s answers %s %.100q, %v", i, s.op.Code, res.Status, res.Value, err)
		}
	}
}

// A session over the limit ends with the reason, and others of the tenant go on.
func TestASessionTooManyEndsWithTheReason(t *testing.T) {
	two := int64(2)
	r, addr := shared(t, store.Options{}, map[string]tenant.Wish{"anna": {Connections: &two}, "bert": {}})
	first := asTenant(t, addr, "anna")
	second := asTenant(t, addr, "anna")
	third := rawSession(t, addr)
	hello := wire.Hello{Version: wire.Version, Client: 1, User: []byte("anna"), Secret: []byte("anna")}
	if _, err := third.Write(wire.AppendHello(nil, &hello)); err != nil {
		t.Fatal(err)
	}
	kind, body, err := readRaw(third)
	if err != nil || kind != wire.TypeGoodbye {
		t.Fatalf("%s, %v", kind, err)
	}
	if bye, err := wire.DecodeGoodbye(body); err != nil || bye.Reason != wire.ReasonTooMany || !strings.Contains(bye.Text, "tenant anna has reached its limit of 2 connections") {
		t.Errorf("it was told %v, %v", bye, err)
	}
	for _, c := range []net.Conn{first, second, asTenant(t, addr, "bert")} {
		if res, err := tell(c, wire.Batch{}, wire.Op{Code: wire.OpPing}); err != nil || res.Status != wire.OK {
			t.Errorf("another session: %s, %v", res.Status, err)
		}
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	await.True(t, "the account has one connection less", func() bool {
		for _, u := range r.Usage() {
			if u.Name == "anna" {
				return u.Connections == 1
			}
		}
		return false
	})
	asTenant(t, addr, "anna")
}

// Operations that wait for the disk beyond the limit are refused; those that wait are answered, and then there is room again.
func TestOperationsThatWaitForTheDiskAreBounded(t *testing.T) {
	few := int64(4)
	o := store.Options{Dir: t.TempDir(), Durability: store.EverySec, SegmentBytes: 128 << 10, MemoryBytes: 1 << 20, Policy: store.Spill}
	r, addr := shared(t, o, map[string]tenant.Wish{"anna": {InFlight: &few}})
	anna := asTenant(t, addr, "anna")
	const keys = 200
	value := make([]byte, 20_000)
	for i := range keys {
		if res, err := tell(anna, wire.Batch{}, wire.Op{Code: wire.OpPut, Key: fmt.Append(nil, i), Arg: value}); err != nil || res.Status != wire.OK {
			t.Fatal(res.Status, err)
		}
	}
	var refused, served int
	for round := 0; round < 50 && (refused == 0 || served == 0); round++ {
		var ops []wire.Op
		for i := range 40 {
			ops = append(ops, wire.Op{Code: wire.OpRead, Key: fmt.Append(nil, (round*40+i)%keys)})
		}
		if _, err := anna.Write(frameOf(1, ops...)); err != nil {
			t.Fatal(err)
		}
		for left := len(ops); left > 0; {
			_, body, err := readRaw(anna)
			if err != nil {
				t.Fatal(err)
			}
			rs, err := wire.DecodeResults(body)
			if err != nil {
				t.Fatal(err)
			}
			for ; rs.More(); left-- {
				var res wire.Result
				switch err := rs.Next(&res); {
				case err != nil:
					t.Fatal(err)
				case res.Status == wire.OK && len(res.Value) == len(value):
					served++
				case res.Status == wire.Refused && strings.Contains(string(res.Value), "tenant anna has reached its limit of 4 operations that wait"):
					refused++
				default:
					t.Fatalf("%s %.100q", res.Status, res.Value)
				}
			}
		}
	}
	if refused == 0 || served == 0 {
		t.Errorf("%d reads were refused, %d served", refused, served)
	}
	await.True(t, "nothing of the tenant waits", func() bool {
		u := r.Usage()
		return u[0].Waiting == 0
	})
}
