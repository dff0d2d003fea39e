package resp

import (
	"math"
	"math/big"
	"strconv"
)

// Writer appends replies to a buffer that it owns. It knows which protocol
// version the client chose and writes RESP3's types as RESP2's nearest ones
// where it must. The zero Writer speaks RESP2 and has no buffer yet.
//
// Invariant: it only ever appends. A command that has to be run again is
// undone by Truncate to the length before it.
type Writer struct {
	buf   []byte
	proto uint8
}

// SetProto chooses RESP2 (2) or RESP3 (3) for everything written from here on.
func (w *Writer) SetProto(version int) { w.proto = uint8(version) }

// Proto returns the version in use, 2 or 3.
func (w *Writer) Proto() int {
	if w.proto == 3 {
		return 3
	}
	return 2
}

// Len returns the number of bytes written so far.
func (w *Writer) Len() int { return len(w.buf) }

// Cap returns the size of the buffer behind the Writer.
func (w *Writer) Cap() int { return cap(w.buf) }

// Truncate forgets everything after the first n bytes.
func (w *Writer) Truncate(n int) { w.buf = w.buf[:n] }

// Bytes returns what was written. It is valid until the next write.
func (w *Writer) Bytes() []byte { return w.buf }

// Swap gives the Writer an empty buffer to append to and returns the one it
// had, so that buffers can be pooled outside.
func (w *Writer) Swap(buf []byte) []byte {
	old := w.buf
	w.buf = buf
	return old
}

// Raw appends bytes that are already encoded.
func (w *Writer) Raw(b []byte) { w.buf = append(w.buf, b...) }

// OK writes the simple string OK.
func (w *Writer) OK() { w.buf = append(w.buf, "+OK\r\n"...) }

// SimpleString writes s, which must hold neither CR nor LF.
func (w *Writer) SimpleString(s string) {
	w.buf = append(w.buf, '+')
	w.buf = append(w.buf, s...)
	w.crlf()
}

// Error writes an error whose first word is its code: "ERR syntax error".
// Line breaks inside are written as spaces, so that text that came from a
// client can never end the reply early.
func (w *Writer) Error(s string) {
	w.buf = append(w.buf, '-')
	start := len(w.buf)
	w.buf = append(w.buf, s...)
	for i := start; i < len(w.buf); i++ {
		if c := w.buf[i]; c == '\r' || c == '\n' {
			w.buf[i] = ' '
		}
	}
	w.crlf()
}

// Int writes an integer.
func (w *Writer) Int(n int64) { w.number(':', n) }

// Bulk writes a string of any bytes.
func (w *Writer) Bulk(b []byte) {
	w.number('$', int64(len(b)))
	w.buf = append(w.buf, b...)
	w.crlf()
}

// BulkString writes a string of any bytes.
func (w *Writer) BulkString(s string) {
	w.number('$', int64(len(s)))
	w.buf = append(w.buf, s...)
	w.crlf()
}

// Null writes the absence of a value: RESP3's null, RESP2's null bulk.
func (w *Writer) Null() {
	if w.proto == 3 {
		w.buf = append(w.buf, "_\r\n"...)
		return
	}
	w.buf = append(w.buf, "$-1\r\n"...)
}

// NullArray writes the absence of an array: RESP3's null, RESP2's null array.
func (w *Writer) NullArray() {
	if w.proto == 3 {
		w.buf = append(w.buf, "_\r\n"...)
		return
	}
	w.buf = append(w.buf, "*-1\r\n"...)
}

// Array opens an array; n values must follow.
func (w *Writer) Array(n int) { w.number('*', int64(n)) }

// Map opens a map; n pairs of values must follow.
func (w *Writer) Map(n int) {
	if w.proto == 3 {
		w.number('%', int64(n))
		return
	}
	w.number('*', 2*int64(n))
}

// Set opens a set; n values must follow.
func (w *Writer) Set(n int) {
	if w.proto == 3 {
		w.number('~', int64(n))
		return
	}
	w.number('*', int64(n))
}

// Push opens an out-of-band message; n values must follow.
func (w *Writer) Push(n int) {
	if w.proto == 3 {
		w.number('>', int64(n))
		return
	}
	w.number('*', int64(n))
}

// Bool writes a truth value: RESP2 clients get 1 or 0.
func (w *Writer) Bool(b bool) {
	switch {
	case w.proto == 3 && b:
		w.buf = append(w.buf, "#t\r\n"...)
	case w.proto == 3:
		w.buf = append(w.buf, "#f\r\n"...)
	case b:
		w.buf = append(w.buf, ":1\r\n"...)
	default:
		w.buf = append(w.buf, ":0\r\n"...)
	}
}

// Double writes f with 17 significant digits, as Redis 7.0 does; RESP2 clients
// get it as a bulk string.
func (w *Writer) Double(f float64) {
	var digits [32]byte
	text := AppendDouble(digits[:0], f)
	if w.proto != 3 {
		w.Bulk(text)
		return
	}
	w.buf = append(w.buf, ',')
	w.buf = append(w.buf, text...)
	w.crlf()
}

// AppendDouble appends f as C's %.17g prints it, infinities as "inf".
func AppendDouble(dst []byte, f float64) []byte {
	switch {
	case math.IsInf(f, 1):
		return append(dst, "inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-inf"...)
	case math.IsNaN(f):
		return append(dst, "nan"...)
	}
	return strconv.AppendFloat(dst, f, 'g', 17, 64)
}

// BigNumber writes an integer of any size; RESP2 clients get a bulk string.
func (w *Writer) BigNumber(n *big.Int) {
	text := n.String()
	if w.proto != 3 {
		w.BulkString(text)
		return
	}
	w.buf = append(w.buf, '(')
	w.buf = append(w.buf, text...)
	w.crlf()
}

// Verbatim writes text with a three-letter format such as "txt"; RESP2 clients
// get the text alone.
func (w *Writer) Verbatim(format, text string) {
	if w.proto != 3 {
		w.BulkString(text)
		return
	}
	w.number('=', int64(len(format)+1+len(text)))
	w.buf = append(w.buf, format...)
	w.buf = append(w.buf, ':')
	w.buf = append(w.buf, text...)
	w.crlf()
}

func (w *Writer) crlf() { w.buf = append(w.buf, '\r', '\n') }

func (w *Writer) number(kind byte, n int64) {
	if uint64(n) < 10 {
		w.buf = append(w.buf, kind, byte('0'+n), '\r', '\n')
		return
	}
	w.buf = append(w.buf, kind)
	w.buf = strconv.AppendInt(w.buf, n, 10)
	w.crlf()
}
