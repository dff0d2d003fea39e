package library

import (
	"unsafe"

	"github.com/ostrodb/ostro/internal/prefetch"
)

// Memo remembers the last functions that somebody has looked up on a shelf, as long as nothing is installed there or
// deleted. It belongs to whoever looks.
type Memo struct {
	in   *content
	last [memoFunctions]remembered
	next int
}

const memoFunctions = 4

type remembered struct {
	fn   *Function
	size uint8
	name [23]byte
}

func (r *remembered) is(name []byte) bool {
	return r.fn != nil && string(r.name[:r.size]) == string(name)
}

// FindBy is Find with a memory.
func (s *Shelf) FindBy(m *Memo, name []byte) *Function {
	c := s.content.Load()
	if m.in != c {
		*m = Memo{in: c}
	}
	for i := range m.last {
		if m.last[i].is(name) {
			return m.last[i].fn
		}
	}
	f := c.functions[string(name)]
	if f != nil && len(name) <= len(m.last[0].name) {
		r := &m.last[m.next%memoFunctions]
		m.next++
		r.fn, r.size = f, uint8(copy(r.name[:], name))
	}
	return f
}

// Lines are where the shelf and what is remembered of it lie, as far as a call of worker's looks there.
func (s *Shelf) Lines(m *Memo, worker int, l *prefetch.List) {
	l.Add(unsafe.Pointer(&s.content), unsafe.Sizeof(s.content))
	seen := (*edition)(nil)
	for i := range m.last {
		f := m.last[i].fn
		if f == nil {
			continue
		}
		l.Add(unsafe.Pointer(f), unsafe.Sizeof(*f))
		if e := f.edition; e != seen {
			seen = e
			l.Add(unsafe.Pointer(e), unsafe.Sizeof(*e))
			w := e.warm.Load()
			l.Add(unsafe.Pointer(w), unsafe.Sizeof(*w))
		}
		f.tally.lines(worker, l)
	}
}

func (t *tally) lines(worker int, l *prefetch.List) {
	parts := t.parts.Load()
	if parts == nil {
		return
	}
	l.Add(unsafe.Pointer(t), unsafe.Sizeof(*t))
	l.Add(unsafe.Pointer(parts), unsafe.Sizeof(*parts))
	l.Add(unsafe.Pointer(t.part(worker)), unsafe.Sizeof(tallyPart{}))
}
