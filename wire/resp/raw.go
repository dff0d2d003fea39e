package resp

import (
	"bytes"
	"io"
	"slices"
	"strconv"
)

// AppendCommand appends a command as clients send it.
func AppendCommand[S ~[]byte | ~string](dst []byte, args ...S) []byte {
	dst = append(dst, '*')
	dst = strconv.AppendInt(dst, int64(len(args)), 10)
	dst = append(dst, '\r', '\n')
	for _, a := range args {
		dst = append(dst, '$')
		dst = strconv.AppendInt(dst, int64(len(a)), 10)
		dst = append(dst, '\r', '\n')
		dst = append(dst, a...)
		dst = append(dst, '\r', '\n')
	}
	return dst
}

// ReadRaw appends the next reply to dst as it came over the wire, for those who
// pass it on. Replies whose length is not known when they begin are malformed to it.
// Memory grows with the bytes that arrive.
func (d *ReplyReader) ReadRaw(dst []byte) ([]byte, error) { return d.raw(dst, 0) }

func (d *ReplyReader) raw(dst []byte, depth int) ([]byte, error) {
	kind, line, err := d.line(depth)
	if err != nil {
		return dst, err
	}
	dst = append(dst, byte(kind))
	dst = append(dst, line...)
	dst = append(dst, '\r', '\n')
	n, isString, err := follows(kind, line)
	if err != nil {
		return dst, err
	}
	if isString {
		return d.rawBody(dst, n)
	}
	for range n {
		if dst, err = d.raw(dst, depth+1); err != nil {
			return dst, cut(err)
		}
	}
	return dst, nil
}

// follows tells what follows a reply's first line: n bytes of a string and its
// end, or n replies.
func follows(kind Kind, line []byte) (n int, isString bool, err error) {
	switch kind {
	case BulkString, BulkError, VerbatimString, Array, Set, Push, Map, attribute:
	default:
		return 0, false, nil
	}
	length, ok := parseInt(line)
	if !ok || length < -1 || length > 1<<31 {
		return 0, false, malformed(kind, line)
	}
	n = int(max(length, 0))
	switch kind {
	case Map:
		return 2 * n, false, nil
	case attribute:
		return 2*n + 1, false, nil
	case Array, Set, Push:
		return n, false, nil
	}
	if length < 0 {
		return 0, false, nil // a null
	}
	return n + 2, true, nil
}

func (d *ReplyReader) rawBody(dst []byte, n int) ([]byte, error) {
	for n > 0 {
		step := min(n, max(len(dst), bulkStepBytes))
		dst = slices.Grow(dst, step)
		part := dst[len(dst) : len(dst)+step]
		if _, err := io.ReadFull(d.r, part); err != nil {
			return dst, cut(err)
		}
		dst = dst[:len(dst)+step]
		n -= step
	}
	if !bytes.HasSuffix(dst, []byte("\r\n")) {
		return dst, malformed(BulkString, []byte("no CRLF at the end"))
	}
	return dst, nil
}

// Elements splits an aggregate reply, as it came over the wire, into its elements;
// ok is false if raw is anything else. A null has none.
func Elements(raw []byte) (elems [][]byte, ok bool) {
	if len(raw) == 0 || !bytes.ContainsRune([]byte("*~>%"), rune(raw[0])) {
		return nil, false
	}
	end := bytes.Index(raw, []byte("\r\n"))
	if end < 0 {
		return nil, false
	}
	n, _, err := follows(Kind(raw[0]), raw[1:end])
	if err != nil {
		return nil, false
	}
	at := end + 2
	for range n {
		size := rawSize(raw[at:], 0)
		if size == 0 {
			return nil, false
		}
		elems = append(elems, raw[at:at+size:at+size])
		at += size
	}
	return elems, at == len(raw)
}

// rawSize is the length of the reply at the start of b, 0 if it is not whole.
func rawSize(b []byte, depth int) int {
	end := bytes.Index(b, []byte("\r\n"))
	if end < 1 || depth > maxDepth {
		return 0
	}
	n, isString, err := follows(Kind(b[0]), b[1:end])
	if err != nil {
		return 0
	}
	at := end + 2
	if isString {
		if at += n; at > len(b) {
			return 0
		}
		return at
	}
	for range n {
		size := rawSize(b[at:], depth+1)
		if size == 0 {
			return 0
		}
		at += size
	}
	return at
}
