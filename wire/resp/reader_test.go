package resp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var replies = []struct {
	input string
	want  Value
}{
	{"+OK\r\n", Value{Kind: SimpleString, Str: []byte("OK")}},
	{"-ERR no\r\n", Value{Kind: SimpleError, Str: []byte("ERR no")}},
	{":-42\r\n", Value{Kind: Integer, Int: -42}},
	{"$3\r\na\r\n\r\n", Value{Kind: BulkString, Str: []byte("a\r\n")}},
	{"$0\r\n\r\n", Value{Kind: BulkString, Str: []byte{}}},
	{"$-1\r\n", Value{Kind: Null}},
	{"*-1\r\n", Value{Kind: Null}},
	{"_\r\n", Value{Kind: Null}},
	{"#t\r\n", Value{Kind: Boolean, Int: 1}},
	{"#f\r\n", Value{Kind: Boolean}},
	{",3.25\r\n", Value{Kind: Double, Float: 3.25}},
	{",-inf\r\n", Value{Kind: Double, Float: math.Inf(-1)}},
	{",nan\r\n", Value{Kind: Double, Float: math.NaN()}},
	{"(123456789012345678901234567890\r\n", Value{Kind: BigNumber, Str: []byte("123456789012345678901234567890")}},
	{"!8\r\nERR a\r\nb\r\n", Value{Kind: BulkError, Str: []byte("ERR a\r\nb")}},
	{"=8\r\ntxt:some\r\n", Value{Kind: VerbatimString, Format: "txt", Str: []byte("some")}},
	{"*0\r\n", Value{Kind: Array, Elems: []Value{}}},
	{"*2\r\n:1\r\n*1\r\n$1\r\na\r\n", Value{Kind: Array, Elems: []Value{
		{Kind: Integer, Int: 1}, {Kind: Array, Elems: []Value{{Kind: BulkString, Str: []byte("a")}}},
	}}},
	{"%1\r\n+a\r\n:1\r\n", Value{Kind: Map, Elems: []Value{{Kind: SimpleString, Str: []byte("a")}, {Kind: Integer, Int: 1}}}},
	{"~1\r\n:1\r\n", Value{Kind: Set, Elems: []Value{{Kind: Integer, Int: 1}}}},
	{">1\r\n+a\r\n", Value{Kind: Push, Elems: []Value{{Kind: SimpleString, Str: []byte("a")}}}},
	{"|1\r\n+ttl\r\n:9\r\n$1\r\na\r\n", Value{Kind: BulkString, Str: []byte("a"), Attrs: []Value{
		{Kind: SimpleString, Str: []byte("ttl")}, {Kind: Integer, Int: 9},
	}}},
	{"$?\r\n;3\r\nabc\r\n;2\r\nde\r\n;0\r\n", Value{Kind: BulkString, Str: []byte("abcde")}},
	{"*?\r\n:1\r\n:2\r\n.\r\n", Value{Kind: Array, Elems: []Value{{Kind: Integer, Int: 1}, {Kind: Integer, Int: 2}}}},
}

func TestReaderDecodesEveryType(t *testing.T) {
	for _, c := range replies {
		for _, r := range []io.Reader{strings.NewReader(c.input), iotest.OneByteReader(strings.NewReader(c.input))} {
			d := NewReplyReader(r)
			got, err := d.Read()
			if err != nil {
				t.Errorf("%q: %v", c.input, err)
				continue
			}
			if diff := cmp.Diff(c.want, got, cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("%q: %s", c.input, diff)
			}
			if _, err := d.Read(); err != io.EOF {
				t.Errorf("%q: %v after the reply, want EOF", c.input, err)
			}
		}
	}
}

func TestReaderTellsACutReplyFromTheEnd(t *testing.T) {
	for _, c := range replies {
		for cut := 1; cut < len(c.input); cut++ {
			_, err := NewReplyReader(strings.NewReader(c.input[:cut])).Read()
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%q: %v, want unexpected EOF", c.input[:cut], err)
			}
		}
	}
}

func TestReaderRefusesMalformedReplies(t *testing.T) {
	deep := strings.Repeat("*1\r\n", maxDepth+2) + ":1\r\n"
	for _, input := range []string{
		":x\r\n", ":\r\n", "$x\r\n", "$-2\r\n", "*-2\r\n", "%-1\r\n", "#x\r\n", ",x\r\n", "(x\r\n", "_x\r\n", "?\r\n", "\r\n", "+a\n",
		"$1\r\nabc", "=2\r\nab\r\n", "*?\r\n$?\r\n;x\r\n", "%?\r\n:1\r\n.\r\n", "$99999999999\r\n", deep, "+" + strings.Repeat("a", MaxLine+1),
	} {
		if v, err := NewReplyReader(strings.NewReader(input)).Read(); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%.30q gave %+v, %v", input, v, err)
		}
	}
}

func TestSkipPassesOverExactlyOneReply(t *testing.T) {
	for _, c := range replies {
		if strings.Contains(c.input, "?") {
			continue
		}
		d := NewReplyReader(strings.NewReader(c.input + "+next\r\n"))
		if kind, err := d.Skip(); err != nil || kind != c.want.Kind {
			t.Errorf("%q: kind %c, %v", c.input, kind, err)
		}
		if v, err := d.Read(); err != nil || string(v.Str) != "next" {
			t.Errorf("%q: then %+v, %v", c.input, v, err)
		}
	}
}

func TestReaderHandlesLargeStrings(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789"), 1<<18)
	input := fmt.Appendf(nil, "$%d\r\n%s\r\n", len(body), body)
	v, err := NewReplyReader(bytes.NewReader(input)).Read()
	if err != nil || !bytes.Equal(v.Str, body) {
		t.Fatalf("%d bytes, %v", len(v.Str), err)
	}
}

func TestErrorRepliesHaveACode(t *testing.T) {
	v := Value{Kind: SimpleError, Str: []byte("WRONGTYPE Operation")}
	var e ReplyError
	if !errors.As(v.Err(), &e) || e.Code() != "WRONGTYPE" || e.Error() != "WRONGTYPE Operation" {
		t.Fatalf("%v", v.Err())
	}
	if v := (Value{Kind: SimpleString}); v.Err() != nil {
		t.Fatal("a string is no error")
	}
}

func TestTextShowsScalars(t *testing.T) {
	for want, v := range map[string]Value{
		"7": {Kind: Integer, Int: 7}, "true": {Kind: Boolean, Int: 1}, "2.5": {Kind: Double, Float: 2.5},
		"a": {Kind: BulkString, Str: []byte("a")}, "(2 elements)": {Kind: Array, Elems: make([]Value, 2)},
		"99": {Kind: BigNumber, Str: []byte("99")},
	} {
		if got := v.Text(); got != want {
			t.Errorf("%+v: %q, want %q", v, got, want)
		}
	}
}

// FuzzReplyReader checks that no input breaks the reader, and that Skip goes
// as far as Read.
func FuzzReplyReader(f *testing.F) {
	for _, c := range replies {
		f.Add([]byte(c.input))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		d := NewReplyReader(bytes.NewReader(input))
		s := NewReplyReader(bytes.NewReader(input))
		for {
			v, err := d.Read()
			if err != nil {
				return
			}
			if bytes.ContainsAny(input, "?") {
				continue // Skip does not take streamed replies.
			}
			kind, err := s.Skip()
			if err != nil || kind != v.Kind || s.Buffered() != d.Buffered() {
				t.Fatalf("read %+v, skipped %c, %v", v, kind, err)
			}
		}
	})
}
