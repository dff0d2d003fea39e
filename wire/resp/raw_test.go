package resp

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestRawRepliesArePassedOnUnchanged(t *testing.T) {
	var all strings.Builder
	var each []string
	for _, c := range replies {
		if !strings.Contains(c.input, "?") { // of unknown length
			all.WriteString(c.input)
			each = append(each, c.input)
		}
	}
	for _, r := range []io.Reader{strings.NewReader(all.String()), iotest.OneByteReader(strings.NewReader(all.String()))} {
		d := NewReplyReader(r)
		for _, want := range each {
			got, err := d.ReadRaw(nil)
			if err != nil || string(got) != want {
				t.Fatalf("%q was read as %q, %v", want, got, err)
			}
		}
		if _, err := d.ReadRaw(nil); err != io.EOF {
			t.Fatalf("the end is %v", err)
		}
	}
}

func TestARawReplyCutAnywhereIsNoReply(t *testing.T) {
	for _, c := range replies {
		for n := 1; n < len(c.input); n++ {
			if got, err := NewReplyReader(strings.NewReader(c.input[:n])).ReadRaw(nil); err == nil {
				t.Fatalf("%q cut at %d was read as %q", c.input, n, got)
			}
			if _, ok := Elements([]byte(c.input[:n])); ok {
				t.Fatalf("%q cut at %d has elements", c.input, n)
			}
		}
	}
}

func TestElementsOfAnArrayAreItsReplies(t *testing.T) {
	raw := []byte("*5\r\n$-1\r\n:7\r\n$3\r\na\r\n\r\n*2\r\n+x\r\n_\r\n%1\r\n+k\r\n$0\r\n\r\n")
	elems, ok := Elements(raw)
	if want := "$-1\r\n|:7\r\n|$3\r\na\r\n\r\n|*2\r\n+x\r\n_\r\n|%1\r\n+k\r\n$0\r\n\r\n"; !ok || string(bytes.Join(elems, []byte("|"))) != want {
		t.Fatalf("%q, %v", elems, ok)
	}
	for _, none := range []string{"", "+OK\r\n", "*1\r\n", "*2\r\n:1\r\n", "*1\r\n:1\r\n:2\r\n", "$3\r\nabc\r\n"} {
		if elems, ok := Elements([]byte(none)); ok {
			t.Errorf("%q has elements %q", none, elems)
		}
	}
	if elems, ok := Elements([]byte("*-1\r\n")); !ok || len(elems) != 0 {
		t.Errorf("a null has %q, %v", elems, ok)
	}
}

func TestAnAppendedCommandIsParsed(t *testing.T) {
	b := AppendCommand([]byte(nil), "set", "a key", "\r\n")
	var p Parser
	var st State
	if n, err := p.Next(b, &st); err != nil || n != len(b) || len(p.Args) != 3 || string(p.Args[2]) != "\r\n" {
		t.Fatalf("%d, %v, %q", n, err, p.Args)
	}
}

// FuzzRaw checks that what ReadRaw passes on is a prefix of what came, and that
// nothing breaks Elements.
func FuzzRaw(f *testing.F) {
	for _, c := range replies {
		f.Add([]byte(c.input))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		raw, err := NewReplyReader(bytes.NewReader(b)).ReadRaw(nil)
		if err == nil && !bytes.HasPrefix(b, raw) {
			t.Fatalf("%q was passed on as %q", b, raw)
		}
		elems, ok := Elements(b)
		total := 0
		for _, e := range elems {
			total += len(e)
		}
		if ok && total > len(b) {
			t.Fatalf("%q has elements %q", b, elems)
		}
	})
}
