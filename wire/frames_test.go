package wire_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/wire"
)

var rewrite = flag.Bool("rewrite", false, "write the golden bytes anew")

var (
	hello   = wire.Hello{Version: wire.Version, Client: 0x1122334455667788, User: []byte("u"), Secret: []byte("pass")}
	welcome = wire.Welcome{Version: wire.Version, MaxFrame: 1 << 20, MaxOps: 99, LeaseMillis: 180_000, Node: []byte("n1")}
	head    = wire.Batch{View: 7, Client: 9, First: 1000, Acked: 990, Number: 3, Count: 3}
	ops     = []wire.Op{
		{Code: wire.OpRead, Table: 2, Tag: 5, Key: []byte("key"), Arg: []byte{}},
		{Code: wire.OpPut, Flags: wire.FlagOnce | wire.FlagExpire | wire.FlagIfVersion, Table: 1, Tag: 6, Sequence: 1002, ExpireAt: 1 << 40, Version: 12, Key: []byte("k"), Arg: []byte("value")},
		{Code: wire.OpPing, Tag: 7, Key: []byte{}, Arg: []byte{}},
	}
	results = []wire.Result{
		{Tag: 6, Version: 13, Value: []byte{}},
		{Tag: 5, Version: 4, ExpireAt: 1 << 41, Value: []byte("hello")},
		{Tag: 7, Status: wire.Failed, Value: []byte("no")},
	}
	owners = wire.Map{
		Revision: 44,
		Nodes:    []wire.Node{{ID: "n1", Address: "h1:1", View: 3}, {ID: "n2", View: 8}},
		Spans:    []wire.Span{{Last: 1 << 60, Node: 1}, {Last: 1 << 61, Node: wire.Nobody}, {Last: view.Whole.Last, Node: 0}},
	}
)

func batchFrame() []byte {
	b, start := wire.BeginBatch(nil, &head)
	for i := range ops {
		b = wire.AppendOp(b, &ops[i], head.First)
	}
	return wire.EndBatch(b, start, len(ops))
}

func resultsFrame() []byte {
	b, start := wire.BeginResults(nil)
	for i := range results {
		b = wire.AppendResult(b, &results[i])
	}
	return wire.EndResults(b, start, len(results))
}

// frames is one of each kind.
func frames() map[wire.Type][]byte {
	return map[wire.Type][]byte{
		wire.TypeHello:   wire.AppendHello(nil, &hello),
		wire.TypeWelcome: wire.AppendWelcome(nil, &welcome),
		wire.TypeBatch:   batchFrame(),
		wire.TypeResults: resultsFrame(),
		wire.TypeStale:   wire.AppendStale(nil, wire.Stale{Number: 3, View: 8}),
		wire.TypeRefresh: wire.AppendRefresh(nil),
		wire.TypeMap:     wire.AppendMap(nil, &owners),
		wire.TypeGoodbye: wire.AppendGoodbye(nil, wire.ReasonDenied, "no"),
	}
}

// decode reads any body; what it returns is for comparisons.
func decode(t wire.Type, body []byte) (any, error) {
	switch t {
	case wire.TypeHello:
		return wire.DecodeHello(body)
	case wire.TypeWelcome:
		return wire.DecodeWelcome(body)
	case wire.TypeBatch:
		return decodeBatch(body)
	case wire.TypeResults:
		return decodeResults(body)
	case wire.TypeStale:
		return wire.DecodeStale(body)
	case wire.TypeMap:
		m, err := wire.DecodeMap(body)
		if err != nil {
			return nil, err
		}
		return *m, nil
	case wire.TypeGoodbye:
		g, err := wire.DecodeGoodbye(body)
		if err != nil {
			return nil, err
		}
		return *g, nil
	case wire.TypeRefresh:
		if len(body) > 0 {
			return nil, wire.ErrTrailing
		}
		return nil, nil
	}
	return nil, fmt.Errorf("%w: no such frame", wire.ErrMalformed)
}

type wholeBatch struct {
	Head wire.Batch
	Ops  []wire.Op
}

func decodeBatch(body []byte) (any, error) {
	o, err := wire.DecodeBatch(body)
	if err != nil {
		return nil, err
	}
	w := wholeBatch{Head: o.Batch}
	for o.More() {
		var op wire.Op
		if err := o.Next(&op); err != nil {
			return nil, err
		}
		w.Ops = append(w.Ops, op)
	}
	return w, nil
}

func decodeResults(body []byte) (any, error) {
	rs, err := wire.DecodeResults(body)
	if err != nil {
		return nil, err
	}
	var all []wire.Result
	for rs.More() {
		var r wire.Result
		if err := rs.Next(&r); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

func TestWhatIsEncodedIsDecoded(t *testing.T) {
	for typ, want := range map[wire.Type]any{
		wire.TypeHello: hello, wire.TypeWelcome: welcome, wire.TypeBatch: wholeBatch{head, ops}, wire.TypeResults: results,
		wire.TypeStale: wire.Stale{Number: 3, View: 8}, wire.TypeMap: owners, wire.TypeGoodbye: wire.Goodbye{Reason: wire.ReasonDenied, Text: "no"},
	} {
		frame := frames()[typ]
		got, body, n, _, err := wire.Next(append(frame, "more"...), wire.MaxFrameBytes)
		if err != nil || got != typ || n != len(frame) {
			t.Fatalf("%s: %s, %d bytes, %v", typ, got, n, err)
		}
		if back, err := decode(got, body); err != nil || !reflect.DeepEqual(back, want) {
			t.Errorf("%s: %+v, %v, want %+v", typ, back, err, want)
		}
	}
}

func TestTheBytesStayAsTheyAre(t *testing.T) {
	const file = "testdata/frames.hex"
	var got strings.Builder
	for typ := wire.TypeHello; typ <= wire.TypeGoodbye; typ++ {
		fmt.Fprintf(&got, "# %s\n%s\n", typ, hex.EncodeToString(frames()[typ]))
	}
	if *rewrite {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || got.String() != string(want) {
		t.Fatalf("clients and servers of other versions cannot read this (%v); got\n%s", err, got.String())
	}
}

func TestAFrameThatIsCutAnywhereIsWaitedForAndABodyThatIsIsRefused(t *testing.T) {
	for typ, frame := range frames() {
		for cut := range frame {
			if _, _, n, need, err := wire.Next(frame[:cut], wire.MaxFrameBytes); n != 0 || err != nil || need <= cut || need > len(frame) {
				t.Fatalf("%s cut at %d: %d bytes of %d, %v", typ, cut, n, need, err)
			}
			if cut < wire.HeaderBytes {
				continue
			}
			if back, err := decode(typ, frame[wire.HeaderBytes:cut]); !errors.Is(err, wire.ErrMalformed) {
				t.Fatalf("%s cut at %d is %+v, %v", typ, cut, back, err)
			}
		}
		if back, err := decode(typ, append(bytes.Clone(frame[wire.HeaderBytes:]), 0)); !errors.Is(err, wire.ErrTrailing) {
			t.Errorf("%s with a byte more is %+v, %v", typ, back, err)
		}
	}
}

func TestFramesThatMakeNoSenseAreRefused(t *testing.T) {
	for name, b := range map[string][]byte{
		"empty":     {0, 0, 0, 0, 1},
		"too large": {0xff, 0xff, 0xff, 0xff, 3},
		"limit":     {101, 0, 0, 0, 3},
	} {
		if _, _, _, _, err := wire.Next(b, 100); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	edit := func(typ wire.Type, at int, to ...byte) []byte {
		b := bytes.Clone(frames()[typ][wire.HeaderBytes:])
		copy(b[at:], to)
		return b
	}
	for name, c := range map[string]struct {
		typ  wire.Type
		body []byte
	}{
		"an unknown operation":       {wire.TypeBatch, edit(wire.TypeBatch, 40, 99)},
		"no operation":               {wire.TypeBatch, edit(wire.TypeBatch, 40, 0)},
		"unknown flags":              {wire.TypeBatch, edit(wire.TypeBatch, 41, 0x80)},
		"a huge key":                 {wire.TypeBatch, edit(wire.TypeBatch, 48, 0xff, 0xff, 0xff, 0xff)},
		"a huge argument":            {wire.TypeBatch, edit(wire.TypeBatch, 52, 0xff, 0xff, 0xff, 0xff)},
		"more operations than bytes": {wire.TypeBatch, edit(wire.TypeBatch, 36, 0xff, 0xff, 0xff, 0xff)},
		"fewer operations":           {wire.TypeBatch, edit(wire.TypeBatch, 36, 2)},
		"no operations, bytes":       {wire.TypeBatch, edit(wire.TypeBatch, 36, 0)},
		"more results than bytes":    {wire.TypeResults, edit(wire.TypeResults, 0, 0xff, 0xff, 0xff, 0xff)},
		"fewer results":              {wire.TypeResults, edit(wire.TypeResults, 0, 1)},
		"an unknown status":          {wire.TypeResults, edit(wire.TypeResults, 8, 99)},
		"unknown result flags":       {wire.TypeResults, edit(wire.TypeResults, 9, 2)},
		"a huge value":               {wire.TypeResults, edit(wire.TypeResults, 12, 0xff, 0xff, 0xff, 0xff)},
		"spans out of order":         {wire.TypeMap, mapBody(wire.Map{Nodes: owners.Nodes, Spans: []wire.Span{{Last: 5}, {Last: 5}, {Last: view.Whole.Last}}})},
		"a span of an unknown node":  {wire.TypeMap, mapBody(wire.Map{Nodes: owners.Nodes, Spans: []wire.Span{{Last: view.Whole.Last, Node: 2}}})},
		"places without a span":      {wire.TypeMap, mapBody(wire.Map{Nodes: owners.Nodes, Spans: []wire.Span{{Last: 5}}})},
		"no spans":                   {wire.TypeMap, mapBody(wire.Map{})},
	} {
		if got, err := decode(c.typ, c.body); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func mapBody(m wire.Map) []byte { return wire.AppendMap(nil, &m)[wire.HeaderBytes:] }

func TestTheOwnerOfEveryPlaceIsInTheMap(t *testing.T) {
	for p, want := range map[uint64]int{0: 1, 1 << 60: 1, 1<<60 + 1: wire.Nobody, 1 << 61: wire.Nobody, 1<<61 + 1: 0, ^uint64(0): 0} {
		if got := owners.Owner(place(p)); got != want {
			t.Errorf("%x belongs to %d, not %d", p, got, want)
		}
	}
	if got := (&wire.Map{}).Owner(1); got != wire.Nobody {
		t.Errorf("an empty map says %d", got)
	}
}

func TestDecodingAllocatesNothing(t *testing.T) {
	batch, answers := batchFrame(), resultsFrame()
	allocs := testing.AllocsPerRun(100, func() {
		_, body, _, _, _ := wire.Next(batch, wire.MaxFrameBytes)
		o, _ := wire.DecodeBatch(body)
		var op wire.Op
		for o.More() {
			_ = o.Next(&op)
		}
		_, body, _, _, _ = wire.Next(answers, wire.MaxFrameBytes)
		rs, _ := wire.DecodeResults(body)
		var r wire.Result
		for rs.More() {
			_ = rs.Next(&r)
		}
	})
	if allocs != 0 {
		t.Fatalf("%v allocations", allocs)
	}
}

func TestEveryCodeStatusAndTypeHasAName(t *testing.T) {
	seen := map[string]bool{}
	for c := wire.OpRead; c <= wire.OpModule; c++ {
		seen[c.String()] = true
	}
	for s := wire.OK; s <= wire.Failed; s++ {
		seen[s.String()] = true
	}
	for typ := wire.TypeHello; typ <= wire.TypeGoodbye; typ++ {
		seen[typ.String()] = true
	}
	if len(seen) != 13+10+8 {
		t.Fatalf("%d names: %v", len(seen), seen)
	}
}

func FuzzFrames(f *testing.F) {
	for _, frame := range frames() {
		f.Add(frame)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		typ, body, n, need, err := wire.Next(b, 1<<20)
		if err != nil {
			return
		}
		if n == 0 {
			if need <= len(b) {
				t.Fatalf("%d bytes are there and %d are needed", len(b), need)
			}
			return
		}
		got, err := decode(typ, body)
		if err != nil {
			if !errors.Is(err, wire.ErrMalformed) {
				t.Fatalf("the error of %s is no ErrMalformed: %v", typ, err)
			}
			return
		}
		again := encode(typ, got)
		if again == nil {
			return
		}
		_, body, _, _, _ = wire.Next(again, 1<<30)
		if back, err := decode(typ, body); err != nil || !reflect.DeepEqual(back, got) {
			t.Fatalf("%+v became %+v, %v", got, back, err)
		}
	})
}

// encode is the way back of decode, for what has one.
func encode(typ wire.Type, v any) []byte {
	switch typ {
	case wire.TypeBatch:
		w := v.(wholeBatch)
		b, start := wire.BeginBatch(nil, &w.Head)
		for i := range w.Ops {
			b = wire.AppendOp(b, &w.Ops[i], w.Head.First)
		}
		return wire.EndBatch(b, start, len(w.Ops))
	case wire.TypeResults:
		b, start := wire.BeginResults(nil)
		for i := range v.([]wire.Result) {
			b = wire.AppendResult(b, &v.([]wire.Result)[i])
		}
		return wire.EndResults(b, start, len(v.([]wire.Result)))
	case wire.TypeMap:
		m := v.(wire.Map)
		return wire.AppendMap(nil, &m)
	case wire.TypeStale:
		return wire.AppendStale(nil, v.(wire.Stale))
	}
	return nil
}
