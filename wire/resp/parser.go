package resp

import "bytes"

// ProtocolError is input that is not RESP. Its text is the one that Redis
// answers before it closes the connection.
type ProtocolError string

func (e ProtocolError) Error() string { return "Protocol error: " + string(e) }

// What Redis 7 says about broken input.
const (
	errMultibulkLength       = ProtocolError("invalid multibulk length")
	errMultibulkUnauth       = ProtocolError("unauthenticated multibulk length")
	errMultibulkCountTooLong = ProtocolError("too big mbulk count string")
	errBulkLength            = ProtocolError("invalid bulk length")
	errBulkUnauth            = ProtocolError("unauthenticated bulk length")
	errBulkCountTooLong      = ProtocolError("too big bulk count string")
	errInlineTooLong         = ProtocolError("too big inline request")
	errQuotes                = ProtocolError("unbalanced quotes in request")
)

// Limits on what a client may send.
const (
	MaxLine        = 64 << 10  // a line: an inline command, or a length
	MaxArgs        = 1 << 20   // arguments of one command
	MaxBulk        = 512 << 20 // bytes of one argument, unless Parser.MaxBulk says otherwise
	maxArgsUnauth  = 10
	maxBulkUnauth  = 16 << 10
	keepArgsAtMost = 4 << 10 // arguments for which a Parser keeps room between commands
)

// Parser cuts commands out of a buffer of input, in place: arguments are
// slices of the buffer. One Parser may serve many connections in turn, for
// all that must survive between two calls is in the connection's State.
type Parser struct {
	// Args is the command that Next found last. The slices are valid as long
	// as the buffer given to Next is unchanged, and until the next Next.
	Args [][]byte

	MaxBulk         int64 // longest argument; 0 means the constant MaxBulk
	Unauthenticated bool  // apply the limits for strangers

	unquoted []byte // where quoted inline arguments are decoded to
}

// State is how far a command was parsed that has not arrived whole. The zero
// State stands before a command's first byte.
type State struct {
	pos   int // parsed up to here, from the command's first byte
	left  int // arguments still to come; 0: the head is not parsed yet
	need  int // buffer length below which a further Next is in vain
	spans []span
}

// span is an argument as offsets, for its buffer may still move.
type span struct{ start, end int }

// Idle reports whether no command is partly parsed.
func (st *State) Idle() bool { return st.pos == 0 && st.left == 0 && st.need == 0 }

// Need returns the length that the buffer must reach before another Next can
// find a command. It is what the client announced, so grow towards it only
// as bytes arrive.
func (st *State) Need() int { return st.need }

// Next looks for a command at the start of buf. It returns how many bytes the
// command takes, with its arguments in p.Args (none for an empty line); or 0
// if more input is needed, when it must be called again with the same bytes
// and more behind them; or a ProtocolError, after which the input is lost.
func (p *Parser) Next(buf []byte, st *State) (int, error) {
	if st.Idle() {
		if n := p.whole(buf); n > 0 {
			return n, nil
		}
		if len(buf) == 0 {
			return 0, nil
		}
	}
	if len(buf) < st.need {
		return 0, nil
	}
	st.need = len(buf) + 1
	if buf[0] != '*' {
		return p.inline(buf, st)
	}
	return p.partial(buf, st)
}

// Peek is Next for who only wants to look ahead: it returns 0 for everything
// but a multibulk command that is there completely, and needs no State.
func (p *Parser) Peek(buf []byte) int { return p.whole(buf) }

// Forget drops references to buffers and what was allocated for an unusually
// large command.
func (p *Parser) Forget() {
	clear(p.Args[:cap(p.Args)])
	p.Args = p.Args[:0]
	if cap(p.Args) > keepArgsAtMost {
		p.Args = nil
	}
	p.unquoted = nil
}

// whole is the hot path: a multibulk command that is there completely and
// breaks no rule. It returns 0 for everything else, which partial sorts out.
func (p *Parser) whole(buf []byte) int {
	if len(buf) < 4 || buf[0] != '*' {
		return 0
	}
	count, i := plainLength(buf, 1)
	if i == 0 || count == 0 || count > p.maxArgs() {
		return 0
	}
	maxBulk := p.maxBulk()
	args := p.Args[:0]
	for range count {
		if i >= len(buf) || buf[i] != '$' {
			return 0
		}
		n, start := plainLength(buf, i+1)
		if start == 0 || n > maxBulk || n > len(buf)-start-2 {
			return 0
		}
		end := start + n
		args = append(args, buf[start:end:end])
		i = end + 2
	}
	p.Args = args
	return i
}

// plainLength reads a number without sign or leading zero that ends in CRLF.
// It returns the number and the offset after the line, or offset 0 if the
// line is anything else or not complete.
func plainLength(buf []byte, i int) (n, next int) {
	if i >= len(buf) {
		return 0, 0
	}
	n = int(buf[i]) - '0'
	if uint(n) > 9 {
		return 0, 0
	}
	first := n
	for i++; i < len(buf); i++ {
		d := uint(buf[i]) - '0'
		if d <= 9 {
			n = n*10 + int(d)
			if first == 0 || n > MaxArgs*1024 {
				return 0, 0
			}
			continue
		}
		if buf[i] == '\r' && i+1 < len(buf) {
			return n, i + 2
		}
		return 0, 0
	}
	return 0, 0
}

// partial parses a multibulk command as far as it has arrived and remembers
// where it stopped, so that no byte is looked at twice but for a line that
// was cut in the middle.
func (p *Parser) partial(buf []byte, st *State) (int, error) {
	if st.left == 0 {
		switch n, err := p.head(buf, st); {
		case err != nil || n == 0:
			return 0, err
		case st.left == 0:
			p.Args = p.Args[:0]
			*st = State{spans: st.spans[:0]}
			return n, nil
		}
	}
	for st.left > 0 {
		ok, err := p.bulk(buf, st)
		if err != nil || !ok {
			return 0, err
		}
	}
	return p.finish(buf, st), nil
}

// head parses the line that tells how many arguments follow. It returns the
// line's length, 0 if it is not complete.
func (p *Parser) head(buf []byte, st *State) (int, error) {
	line, next, ok := cutLine(buf, 1)
	switch {
	case !ok:
		return 0, errMultibulkCountTooLong
	case next == 0:
		return 0, nil
	}
	count, ok := parseInt(line)
	switch {
	case !ok || count > MaxArgs:
		return 0, errMultibulkLength
	case count > maxArgsUnauth && p.Unauthenticated:
		return 0, errMultibulkUnauth
	}
	st.pos = next
	st.left = int(max(count, 0))
	return next, nil
}

// bulk parses one argument. It returns false if it has not arrived whole.
func (p *Parser) bulk(buf []byte, st *State) (bool, error) {
	line, next, ok := cutLine(buf, st.pos)
	switch {
	case !ok:
		return false, errBulkCountTooLong
	case next == 0:
		return false, nil
	case buf[st.pos] != '$':
		return false, ProtocolError("expected '$', got '" + printable(buf[st.pos]) + "'")
	}
	n, ok := parseInt(line[1:])
	switch {
	case !ok || n < 0 || n > p.limitBulk():
		return false, errBulkLength
	case n > maxBulkUnauth && p.Unauthenticated:
		return false, errBulkUnauth
	}
	end := next + int(n)
	if len(buf) < end+2 {
		st.need = end + 2
		return false, nil
	}
	st.spans = append(st.spans, span{next, end})
	st.pos = end + 2
	st.left--
	return true, nil
}

// finish turns the spans of a complete command into arguments.
func (p *Parser) finish(buf []byte, st *State) int {
	p.Args = p.Args[:0]
	for _, s := range st.spans {
		p.Args = append(p.Args, buf[s.start:s.end:s.end])
	}
	n := st.pos
	*st = State{} // what the spans took is seldom needed again
	return n
}

// cutLine returns the bytes from i to the next CR and the offset after its
// LF, or offset 0 if the line is not complete; ok is false if it is too long,
// complete or not. As Redis, it takes any byte for the LF.
func cutLine(buf []byte, i int) (line []byte, next int, ok bool) {
	n := bytes.IndexByte(buf[i:], '\r')
	switch {
	case n > MaxLine || n < 0 && len(buf)-i > MaxLine:
		return nil, 0, false
	case n < 0 || i+n+1 >= len(buf):
		return nil, 0, true
	}
	return buf[i : i+n], i + n + 2, true
}

// parseInt reads a number as strictly as Redis does: no plus sign, no leading
// zeros, no spaces, nothing beyond 64 bits.
func parseInt(b []byte) (int64, bool) {
	digits := b
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		digits = b[1:]
	}
	switch {
	case len(digits) == 0 || len(digits) > 19:
		return 0, false
	case digits[0] == '0':
		return 0, len(digits) == 1 && !negative
	}
	var n uint64
	for _, c := range digits {
		d := uint64(c) - '0'
		if d > 9 {
			return 0, false
		}
		n = n*10 + d
	}
	switch {
	case negative && n <= 1<<63:
		return -int64(n), true
	case !negative && n <= 1<<63-1:
		return int64(n), true
	}
	return 0, false
}

// printable keeps line breaks and the like out of the error.
func printable(b byte) string {
	if b == '\r' || b == '\n' {
		return " "
	}
	return string([]byte{b})
}

func (p *Parser) limitBulk() int64 {
	if p.MaxBulk == 0 {
		return MaxBulk
	}
	return p.MaxBulk
}

func (p *Parser) maxBulk() int {
	if p.Unauthenticated {
		return int(min(maxBulkUnauth, p.limitBulk()))
	}
	return int(p.limitBulk())
}

func (p *Parser) maxArgs() int {
	if p.Unauthenticated {
		return maxArgsUnauth
	}
	return MaxArgs
}
