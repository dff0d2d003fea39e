package resp

import (
	"math"
	"math/big"
	"testing"
)

func TestWriterSpeaksBothProtocols(t *testing.T) {
	for _, c := range []struct {
		name         string
		write        func(w *Writer)
		resp2, resp3 string
	}{
		{"ok", func(w *Writer) { w.OK() }, "+OK\r\n", "+OK\r\n"},
		{"simple string", func(w *Writer) { w.SimpleString("PONG") }, "+PONG\r\n", "+PONG\r\n"},
		{"error", func(w *Writer) { w.Error("ERR a\r\nb") }, "-ERR a  b\r\n", "-ERR a  b\r\n"},
		{"int", func(w *Writer) { w.Int(7); w.Int(-12); w.Int(math.MinInt64) }, ":7\r\n:-12\r\n:-9223372036854775808\r\n", ":7\r\n:-12\r\n:-9223372036854775808\r\n"},
		{"bulk", func(w *Writer) { w.Bulk([]byte("a\r\nb")); w.Bulk(nil) }, "$4\r\na\r\nb\r\n$0\r\n\r\n", "$4\r\na\r\nb\r\n$0\r\n\r\n"},
		{"bulk string", func(w *Writer) { w.BulkString("0123456789") }, "$10\r\n0123456789\r\n", "$10\r\n0123456789\r\n"},
		{"null", func(w *Writer) { w.Null() }, "$-1\r\n", "_\r\n"},
		{"null array", func(w *Writer) { w.NullArray() }, "*-1\r\n", "_\r\n"},
		{"array", func(w *Writer) { w.Array(12) }, "*12\r\n", "*12\r\n"},
		{"map", func(w *Writer) { w.Map(3) }, "*6\r\n", "%3\r\n"},
		{"set", func(w *Writer) { w.Set(3) }, "*3\r\n", "~3\r\n"},
		{"push", func(w *Writer) { w.Push(3) }, "*3\r\n", ">3\r\n"},
		{"bool", func(w *Writer) { w.Bool(true); w.Bool(false) }, ":1\r\n:0\r\n", "#t\r\n#f\r\n"},
		{"double", func(w *Writer) { w.Double(3.14) }, "$18\r\n3.1400000000000001\r\n", ",3.1400000000000001\r\n"},
		{"infinity", func(w *Writer) { w.Double(math.Inf(-1)) }, "$4\r\n-inf\r\n", ",-inf\r\n"},
		{"big number", func(w *Writer) { w.BigNumber(new(big.Int).Lsh(big.NewInt(1), 70)) }, "$22\r\n1180591620717411303424\r\n", "(1180591620717411303424\r\n"},
		{"verbatim", func(w *Writer) { w.Verbatim("txt", "hello") }, "$5\r\nhello\r\n", "=9\r\ntxt:hello\r\n"},
		{"raw", func(w *Writer) { w.Raw([]byte("+a\r\n")) }, "+a\r\n", "+a\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var two, three Writer
			three.SetProto(3)
			c.write(&two)
			c.write(&three)
			if got := string(two.Bytes()); got != c.resp2 || two.Proto() != 2 {
				t.Errorf("RESP2: %q, want %q", got, c.resp2)
			}
			if got := string(three.Bytes()); got != c.resp3 || three.Proto() != 3 {
				t.Errorf("RESP3: %q, want %q", got, c.resp3)
			}
		})
	}
}

func TestDoublesHaveSeventeenDigitsAsInC(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0", 1: "1", -1.5: "-1.5", 0.1: "0.10000000000000001", 100000: "100000", 1e16: "10000000000000000",
		1e17: "1e+17", 1e20: "1e+20", 1e-4: "0.0001", 1e-5: "1.0000000000000001e-05", 1e300: "1.0000000000000001e+300",
		123456789012345678: "1.2345678901234568e+17", math.Inf(1): "inf",
	} {
		if got := string(AppendDouble(nil, f)); got != want {
			t.Errorf("%g: %s, want %s", f, got, want)
		}
	}
	if got := string(AppendDouble(nil, math.NaN())); got != "nan" {
		t.Errorf("NaN: %s", got)
	}
}

func TestTruncateUndoesWhatWasWrittenSince(t *testing.T) {
	var w Writer
	w.OK()
	before := w.Len()
	w.Array(2)
	w.Int(1)
	w.Truncate(before)
	w.Null()
	if got := string(w.Bytes()); got != "+OK\r\n$-1\r\n" {
		t.Fatalf("%q", got)
	}
	if old := string(w.Swap(nil)); old != "+OK\r\n$-1\r\n" || w.Len() != 0 || w.Cap() != 0 {
		t.Fatalf("swapped %q, left %d of %d", old, w.Len(), w.Cap())
	}
}
