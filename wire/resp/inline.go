package resp

import "bytes"

// inline parses a command that came as a line of words, as typed into telnet.
func (p *Parser) inline(buf []byte, st *State) (int, error) {
	n := bytes.IndexByte(buf[st.pos:], '\n')
	end := st.pos + n
	switch {
	case end > MaxLine || n < 0 && len(buf) > MaxLine:
		return 0, errInlineTooLong
	case n < 0:
		st.pos = len(buf)
		return 0, nil
	}
	*st = State{}
	line := bytes.TrimSuffix(buf[:end], []byte{'\r'})
	if !p.words(line) {
		return 0, errQuotes
	}
	return end + 1, nil
}

// words splits a line into p.Args by the rules of redis-cli: words may be
// quoted, with escapes in double quotes. It returns false if a quote is not
// closed or is followed by anything but a space.
func (p *Parser) words(line []byte) bool {
	p.Args = p.Args[:0]
	p.unquoted = p.unquoted[:0]
	for i := 0; ; {
		for i < len(line) && isSpace(line[i]) {
			i++
		}
		if i == len(line) {
			return true
		}
		start := i
		for i < len(line) && !isSpace(line[i]) && line[i] != '"' && line[i] != '\'' {
			i++
		}
		if i == len(line) || isSpace(line[i]) {
			p.Args = append(p.Args, line[start:i:i])
			continue
		}
		n, ok := p.quotedWord(line[start:])
		if !ok {
			return false
		}
		i = start + n
	}
}

// quotedWord decodes a word with a quoted part into p.unquoted. It returns
// how much of the line the word takes.
func (p *Parser) quotedWord(line []byte) (int, bool) {
	start := len(p.unquoted)
	i := 0
	for i < len(line) && !isSpace(line[i]) {
		var n int
		switch line[i] {
		case '"':
			n = p.doubleQuoted(line[i:])
		case '\'':
			n = p.singleQuoted(line[i:])
		default:
			p.unquoted = append(p.unquoted, line[i])
			i++
			continue
		}
		if i += n; n == 0 || i < len(line) && !isSpace(line[i]) {
			return 0, false
		}
	}
	end := len(p.unquoted)
	p.Args = append(p.Args, p.unquoted[start:end:end])
	return i, true
}

// doubleQuoted decodes a string in double quotes at the start of line and
// returns its length, 0 if it is not closed.
func (p *Parser) doubleQuoted(line []byte) int {
	for i := 1; i < len(line); i++ {
		c := line[i]
		if c == '"' {
			return i + 1
		}
		if c == '\\' && i+1 < len(line) {
			i++
			c = unescape(line[i])
			if line[i] == 'x' && i+2 < len(line) && isHex(line[i+1]) && isHex(line[i+2]) {
				c = hexValue(line[i+1])<<4 | hexValue(line[i+2])
				i += 2
			}
		}
		p.unquoted = append(p.unquoted, c)
	}
	return 0
}

// singleQuoted is the same for single quotes, where only \' is an escape.
func (p *Parser) singleQuoted(line []byte) int {
	for i := 1; i < len(line); i++ {
		c := line[i]
		if c == '\'' {
			return i + 1
		}
		if c == '\\' && i+1 < len(line) && line[i+1] == '\'' {
			i++
			c = '\''
		}
		p.unquoted = append(p.unquoted, c)
	}
	return 0
}

func unescape(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'b':
		return '\b'
	case 'a':
		return '\a'
	}
	return c
}

func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}

func hexValue(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

// SplitWords splits a line as an inline command is split; ok is false if its
// quotes do not balance. It is for command lines that people type.
func SplitWords(line string) (words []string, ok bool) {
	var p Parser
	if !p.words([]byte(line)) {
		return nil, false
	}
	for _, w := range p.Args {
		words = append(words, string(w))
	}
	return words, true
}
