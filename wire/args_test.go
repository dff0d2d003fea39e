package wire_test

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/wire"
)

func place(p uint64) record.Place { return record.Place(p) }

// argument is one kind of argument or result: its bytes, and a reader that returns what is in them.
type argument struct {
	bytes []byte
	read  func([]byte) (any, error)
	want  any
	open  bool // its last field takes what is there
}

func arguments() map[string]argument {
	return map[string]argument{
		"swap": {
			wire.AppendSwap(nil, &wire.Swap{Old: []byte("old"), New: []byte("new")}),
			func(b []byte) (any, error) { return wire.DecodeSwap(b) },
			wire.Swap{Old: []byte("old"), New: []byte("new")},
			true,
		},
		"insert": {
			wire.AppendSwap(nil, &wire.Swap{Absent: true, Old: []byte("ignored"), New: []byte("new")}),
			func(b []byte) (any, error) { return wire.DecodeSwap(b) },
			wire.Swap{Absent: true, Old: []byte{}, New: []byte("new")},
			true,
		},
		"merge": {
			wire.AppendMerge(nil, "max", []byte("operand")),
			func(b []byte) (any, error) {
				name, operand, err := wire.DecodeMerge(b)
				return [][]byte{name, operand}, err
			},
			[][]byte{[]byte("max"), []byte("operand")},
			true,
		},
		"key": {
			wire.AppendKey(nil, []byte("key")),
			func(b []byte) (any, error) {
				key, rest, err := wire.NextKey(b)
				return [][]byte{key, rest}, err
			},
			[][]byte{[]byte("key"), {}},
			true,
		},
		"put": {
			wire.AppendPut(nil, &wire.Put{Key: []byte("k"), Value: []byte("v"), ExpireAt: -5}),
			func(b []byte) (any, error) {
				p, _, err := wire.NextPut(b)
				return p, err
			},
			wire.Put{Key: []byte("k"), Value: []byte("v"), ExpireAt: -5},
			true,
		},
		"value": {
			wire.AppendValue(nil, &wire.Value{Status: wire.NotFound, Version: 3, ExpireAt: 4, Value: []byte("v")}),
			func(b []byte) (any, error) {
				v, _, err := wire.NextValue(b)
				return v, err
			},
			wire.Value{Status: wire.NotFound, Version: 3, ExpireAt: 4, Value: []byte("v")},
			true,
		},
		"scan": {
			wire.AppendScan(nil, &wire.Scan{First: 1, Last: 2, Cursor: 3, Count: 4, Values: true}),
			func(b []byte) (any, error) { return wire.DecodeScan(b) },
			wire.Scan{First: 1, Last: 2, Cursor: 3, Count: 4, Values: true},
			false,
		},
		"page": {
			wire.AppendPage(nil, wire.Page{Cursor: 9, Resume: 8}),
			func(b []byte) (any, error) {
				p, _, err := wire.DecodePage(b)
				return p, err
			},
			wire.Page{Cursor: 9, Resume: 8},
			true,
		},
		"record": {
			wire.AppendRecord(nil, &wire.Record{Key: []byte("k"), Value: []byte("v"), Version: 7, ExpireAt: 8}),
			func(b []byte) (any, error) {
				r, _, err := wire.NextRecord(b)
				return r, err
			},
			wire.Record{Key: []byte("k"), Value: []byte("v"), Version: 7, ExpireAt: 8},
			true,
		},
	}
}

// minimal is where an argument whose last field takes the rest may end.
var minimal = map[string]int{"swap": 1 + 4 + 3, "insert": 1 + 4, "merge": 1 + 3}

func TestArgumentsComeBackAndAreRefusedWhenCut(t *testing.T) {
	for name, a := range arguments() {
		if got, err := a.read(a.bytes); err != nil || !reflect.DeepEqual(got, a.want) {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, a.want)
		}
		end, ok := minimal[name]
		if !ok {
			end = len(a.bytes)
		}
		for cut := range end {
			if got, err := a.read(a.bytes[:cut]); !errors.Is(err, wire.ErrShort) {
				t.Errorf("%s cut at %d: %+v, %v", name, cut, got, err)
			}
		}
		if _, err := a.read(append(bytes.Clone(a.bytes), 0)); (err == nil) != a.open {
			t.Errorf("%s with a byte more: %v", name, err)
		}
	}
}

func FuzzArguments(f *testing.F) {
	for _, a := range arguments() {
		f.Add(a.bytes)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for name, a := range arguments() {
			if got, err := a.read(b); err != nil && !errors.Is(err, wire.ErrMalformed) {
				t.Fatalf("%s: %+v, %v", name, got, err)
			}
		}
	})
}
