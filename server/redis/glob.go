package redis

// globMatch reports whether s matches pattern by Redis' rules, which KEYS, SCAN
// and CONFIG GET share:
//
//   - any bytes, also none
//     ?        any one byte
//     [a-z^]   one byte of a class; [^...] negates; \ escapes inside
//     \x       the byte x
//
// Redis' own edges are kept: an unclosed class ends with the pattern, a reversed
// range is turned around, ranges compare bytes as signed, a lone trailing
// backslash stands for itself, and the empty string matches only the empty pattern.
//
// A pattern may take a number of steps that grows with the string, a byte of a class being one. Whoever writes longer ones
// would have the loop stand still: as in Redis, where stars are too many, such a pattern matches nothing.
func globMatch(pattern, s []byte, fold bool) bool {
	if len(s) == 0 {
		return len(pattern) == 0
	}
	p, i := 0, 0
	star, retry := -1, 0 // where the last * stood, and where its rest was last tried
	left := globSteps + globStepsByte*len(s)
	for i < len(s) {
		if left--; left < 0 {
			return false
		}
		if p < len(pattern) && pattern[p] == '*' {
			star, retry = p, i
			p++
			continue
		}
		if p < len(pattern) {
			next, ok := globOne(pattern[:min(p+2+left, len(pattern))], p, s[i], fold)
			left -= next - p
			if ok {
				p, i = next, i+1
				continue
			}
		}
		if star < 0 {
			return false
		}
		retry++
		p, i = star+1, retry
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// globSteps and globStepsByte are how many steps a pattern may take, and how many more for each byte of the string.
const (
	globSteps     = 8192
	globStepsByte = 8
)

// globOne matches the element of the pattern at p, which is no star, against one
// byte, and tells where the next element begins.
func globOne(pattern []byte, p int, c byte, fold bool) (next int, ok bool) {
	switch pattern[p] {
	case '?':
		return p + 1, true
	case '[':
		return globClass(pattern, p+1, c, fold)
	case '\\':
		if p+1 < len(pattern) {
			p++
		}
	}
	return p + 1, equalByte(pattern[p], c, fold)
}

func globClass(pattern []byte, p int, c byte, fold bool) (next int, ok bool) {
	negate := p < len(pattern) && pattern[p] == '^'
	if negate {
		p++
	}
	for ; p < len(pattern) && pattern[p] != ']'; p++ {
		switch {
		case pattern[p] == '\\' && p+1 < len(pattern):
			p++
			ok = ok || pattern[p] == c
		case p+2 < len(pattern) && pattern[p+1] == '-':
			ok = ok || inRange(pattern[p], pattern[p+2], c, fold)
			p += 2
		default:
			ok = ok || equalByte(pattern[p], c, fold)
		}
	}
	return min(p+1, len(pattern)), ok != negate
}

func inRange(from, to, c byte, fold bool) bool {
	if int8(from) > int8(to) {
		from, to = to, from
	}
	if fold {
		from, to, c = lower(from), lower(to), lower(c)
	}
	return int8(from) <= int8(c) && int8(c) <= int8(to)
}

func equalByte(a, b byte, fold bool) bool {
	return a == b || fold && lower(a) == lower(b)
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
