package resp

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"strconv"
)

const (
	maxDepth      = 128      // nested replies; deeper ones are an attack
	firstElems    = 64       // elements to make room for before any has arrived
	bulkStepBytes = 64 << 10 // bytes to make room for before any has arrived
	streamed      = -2       // a length of "?": chunks follow
)

// ReplyReader decodes replies from a server. It is not for concurrent use.
type ReplyReader struct {
	r *bufio.Reader
}

// NewReplyReader returns a ReplyReader with a buffer of 64 KiB on r.
func NewReplyReader(r io.Reader) *ReplyReader {
	return &ReplyReader{r: bufio.NewReaderSize(r, MaxLine)}
}

// Buffered returns how many bytes have arrived and are not decoded yet.
func (d *ReplyReader) Buffered() int { return d.r.Buffered() }

// Read decodes the next reply. Error replies are Values; an error means that
// the stream is broken, io.EOF that it ended between two replies.
func (d *ReplyReader) Read() (Value, error) { return d.value(0) }

// Skip reads the next reply without keeping it and returns its kind. It does
// not allocate.
func (d *ReplyReader) Skip() (Kind, error) { return d.skip(0) }

func (d *ReplyReader) value(depth int) (Value, error) {
	kind, line, err := d.line(depth)
	if err != nil {
		return Value{}, err
	}
	switch kind {
	case SimpleString, SimpleError:
		return Value{Kind: kind, Str: slices.Clone(line)}, nil
	case BulkString, BulkError, VerbatimString:
		return d.bulk(kind, line)
	case Array, Set, Push, Map:
		return d.aggregate(kind, line, depth)
	case attribute:
		return d.attributed(line, depth)
	}
	return scalar(kind, line)
}

// scalar decodes what fits one line and is no string.
func scalar(kind Kind, line []byte) (Value, error) {
	switch kind {
	case Integer:
		n, err := strconv.ParseInt(string(line), 10, 64)
		if err == nil {
			return Value{Kind: kind, Int: n}, nil
		}
	case Null:
		if len(line) == 0 {
			return Value{Kind: kind}, nil
		}
	case Boolean:
		switch string(line) {
		case "t":
			return Value{Kind: kind, Int: 1}, nil
		case "f":
			return Value{Kind: kind}, nil
		}
	case Double:
		if f, ok := parseDouble(string(line)); ok {
			return Value{Kind: kind, Float: f}, nil
		}
	case BigNumber:
		if _, ok := new(big.Int).SetString(string(line), 10); ok {
			return Value{Kind: kind, Str: slices.Clone(line)}, nil
		}
	}
	return Value{}, malformed(kind, line)
}

func parseDouble(s string) (float64, bool) {
	switch s {
	case "inf":
		return math.Inf(1), true
	case "-inf":
		return math.Inf(-1), true
	case "nan", "-nan":
		return math.NaN(), true
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil && !math.IsInf(f, 0) && !math.IsNaN(f)
}

func (d *ReplyReader) bulk(kind Kind, line []byte) (Value, error) {
	n, err := d.length(kind, line)
	switch {
	case err != nil:
		return Value{}, err
	case n == -1:
		return Value{Kind: Null}, nil
	case n == streamed:
		return d.chunks(kind)
	}
	body, err := d.body(nil, n)
	if err != nil {
		return Value{}, err
	}
	v := Value{Kind: kind, Str: body}
	if kind == VerbatimString {
		if len(body) < 4 || body[3] != ':' {
			return Value{}, malformed(kind, body)
		}
		v.Format, v.Str = string(body[:3]), body[4:]
	}
	return v, nil
}

// chunks reads a string whose length was not known when it began.
func (d *ReplyReader) chunks(kind Kind) (Value, error) {
	var body []byte
	for {
		k, line, err := d.line(1)
		if err != nil {
			return Value{}, cut(err)
		}
		n, err := strconv.Atoi(string(line))
		if k != ';' || err != nil || n < 0 {
			return Value{}, malformed(k, line)
		}
		if n == 0 {
			return Value{Kind: kind, Str: body}, nil
		}
		if body, err = d.body(body, n); err != nil {
			return Value{}, err
		}
	}
}

// body appends n bytes and drops the CRLF behind them. Memory grows with the
// bytes that arrive.
func (d *ReplyReader) body(dst []byte, n int) ([]byte, error) {
	if dst == nil {
		dst = make([]byte, 0, min(n, bulkStepBytes))
	}
	for n > 0 {
		if len(dst) == cap(dst) {
			dst = slices.Grow(dst, min(n, max(len(dst), bulkStepBytes)))
		}
		step := min(n, cap(dst)-len(dst))
		part := dst[len(dst) : len(dst)+step]
		if _, err := io.ReadFull(d.r, part); err != nil {
			return nil, cut(err)
		}
		dst = dst[:len(dst)+step]
		n -= step
	}
	return dst, d.crlf()
}

func (d *ReplyReader) aggregate(kind Kind, line []byte, depth int) (Value, error) {
	n, err := d.length(kind, line)
	switch {
	case err != nil:
		return Value{}, err
	case n == -1:
		return Value{Kind: Null}, nil
	case n == streamed:
		return d.stream(kind, depth)
	}
	elems, err := d.elements(kind, n, depth)
	return Value{Kind: kind, Elems: elems}, err
}

func (d *ReplyReader) elements(kind Kind, n, depth int) ([]Value, error) {
	if kind == Map || kind == attribute {
		n *= 2
	}
	elems := make([]Value, 0, min(n, firstElems))
	for range n {
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, cut(err)
		}
		elems = append(elems, v)
	}
	return elems, nil
}

// stream reads an aggregate whose length was not known when it began.
func (d *ReplyReader) stream(kind Kind, depth int) (Value, error) {
	v := Value{Kind: kind, Elems: []Value{}}
	for {
		next, err := d.r.Peek(1)
		if err != nil {
			return Value{}, cut(err)
		}
		if next[0] == '.' {
			_, _, err := d.line(depth)
			if err == nil && kind == Map && len(v.Elems)%2 != 0 {
				err = malformed(kind, []byte("a key without a value"))
			}
			return v, err
		}
		e, err := d.value(depth + 1)
		if err != nil {
			return Value{}, cut(err)
		}
		v.Elems = append(v.Elems, e)
	}
}

// attributed reads attributes and the value that they describe.
func (d *ReplyReader) attributed(line []byte, depth int) (Value, error) {
	n, err := d.length(attribute, line)
	if err != nil {
		return Value{}, err
	}
	if n < 0 {
		return Value{}, malformed(attribute, line)
	}
	attrs, err := d.elements(attribute, n, depth)
	if err != nil {
		return Value{}, err
	}
	v, err := d.value(depth + 1)
	v.Attrs = append(attrs, v.Attrs...)
	return v, cut(err)
}

func (d *ReplyReader) skip(depth int) (Kind, error) {
	kind, line, err := d.line(depth)
	if err != nil {
		return 0, err
	}
	switch kind {
	case BulkString, BulkError, VerbatimString, Array, Set, Push, Map, attribute:
	default:
		return kind, nil
	}
	n, ok := parseInt(line)
	switch {
	case ok && n == -1:
		return Null, nil
	case !ok || n < 0 || n > math.MaxInt32:
		return 0, malformed(kind, line)
	}
	switch kind {
	case BulkString, BulkError, VerbatimString:
		_, err := d.r.Discard(int(n) + 2)
		return kind, cut(err)
	case Map:
		n *= 2
	case attribute:
		n = 2*n + 1
	}
	last := kind
	for range n {
		if last, err = d.skip(depth + 1); err != nil {
			return 0, cut(err)
		}
	}
	if kind == attribute {
		return last, nil
	}
	return kind, nil
}

// line reads one line and splits off its kind. It is valid until the next read.
func (d *ReplyReader) line(depth int) (Kind, []byte, error) {
	if depth > maxDepth {
		return 0, nil, fmt.Errorf("resp: reply is nested deeper than %d", maxDepth)
	}
	line, err := d.r.ReadSlice('\n')
	switch {
	case err == io.EOF && len(line) == 0:
		return 0, nil, io.EOF
	case err == bufio.ErrBufferFull:
		return 0, nil, fmt.Errorf("resp: reply line is longer than %d bytes", MaxLine)
	case err != nil:
		return 0, nil, cut(err)
	case len(line) < 3 || line[len(line)-2] != '\r':
		return 0, nil, fmt.Errorf("resp: reply line %q does not end in CRLF", line)
	}
	return Kind(line[0]), line[1 : len(line)-2], nil
}

// length decodes the length of a string or an aggregate: -1 for RESP2's
// null, streamed for RESP3's "?".
func (d *ReplyReader) length(kind Kind, line []byte) (int, error) {
	if len(line) == 1 && line[0] == '?' && kind != attribute {
		return streamed, nil
	}
	n, ok := parseInt(line)
	nullable := kind == BulkString || kind == Array
	if !ok || n < -1 || n > math.MaxInt32 || n == -1 && !nullable {
		return 0, malformed(kind, line)
	}
	return int(n), nil
}

func (d *ReplyReader) crlf() error {
	end, err := d.r.Peek(2)
	if err != nil {
		return cut(err)
	}
	if !bytes.Equal(end, []byte("\r\n")) {
		return fmt.Errorf("resp: string ends in %q instead of CRLF", end)
	}
	_, err = d.r.Discard(2)
	return err
}

func malformed(kind Kind, line []byte) error {
	return fmt.Errorf("resp: malformed reply %q", append([]byte{byte(kind)}, line[:min(len(line), 64)]...))
}

// cut turns an end inside a reply into io.ErrUnexpectedEOF.
func cut(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
