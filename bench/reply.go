package bench

import "bytes"

// replies counts the replies in a stream without keeping them. It knows what
// the load asks for: simple strings, errors, integers, bulk strings, nulls.
//
// Invariant: between two calls of feed, the stream stands inside the line that
// line holds, or skip bytes before the end of a bulk string, or at the start of a reply.
type replies struct {
	line  []byte // of a reply's first line, cut off by the end of what was read
	skip  int    // bytes of a bulk string, with its line end, still to come
	nulls uint64
	fails uint64
	first string // error that came first
	odd   bool   // something came that nobody asked for
	// frames: the stream is native, and line holds a frame that has not come whole.
	frames bool
}

// longestLine is more than any first line that counts.
const longestLine = 4096

// feed takes the next bytes and returns how many replies ended in them.
func (r *replies) feed(b []byte) int {
	if r.frames {
		return r.feedFrames(b)
	}
	done := 0
	if r.skip > 0 {
		n := min(r.skip, len(b))
		b = b[n:]
		if r.skip -= n; r.skip > 0 {
			return 0
		}
		done++
	}
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			if len(r.line) < longestLine {
				r.line = append(r.line, b...)
			}
			return done
		}
		line := b[:end+1]
		if len(r.line) > 0 {
			r.line = append(r.line, line...)
			line = r.line
		}
		b = b[end+1:]
		n := r.begin(line)
		r.line = r.line[:0]
		if n > len(b) {
			r.skip = n - len(b)
			return done
		}
		b = b[n:]
		done++
	}
	return done
}

// begin takes the first line of a reply and returns how many bytes follow it.
func (r *replies) begin(line []byte) int {
	switch line[0] {
	case '$':
		if len(line) > 1 && line[1] == '-' {
			r.nulls++
			return 0
		}
		n := 0
		for _, c := range line[1:] {
			if c < '0' || c > '9' {
				break
			}
			n = 10*n + int(c-'0')
		}
		return n + 2
	case '+', ':':
		return 0
	case '_':
		r.nulls++
		return 0
	case '-':
		r.fail(string(bytes.TrimSpace(line[1:])))
		return 0
	default:
		r.odd = true
		return 0
	}
}
