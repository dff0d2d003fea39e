package call

import (
	"unsafe"

	"github.com/ostrodb/ostro/internal/prefetch"
	"github.com/ostrodb/ostro/tenant/extension"
	"github.com/ostrodb/ostro/tenant/library"
)

// Site is where calls come from: a connection. It remembers which functions they were of, and where in memory the last
// of them looked, so that a batch can begin with asking for all that. It belongs to who executes the connection's
// operations.
type Site struct {
	memo   library.Memo
	lines  prefetch.List
	on     extension.Mark // whose lines they are
	likely bool           // the last batch had calls
}

// stackBytes is how deep a call goes.
const stackBytes = 2560

// Expect brings near what the calls of the next batch will need, if it has any, as far as that can be known.
func (s *Site) Expect() {
	if s != nil && s.likely {
		s.likely = false
		prefetch.Stack(stackBytes)
		s.lines.Fetch()
	}
}

// learn notes where calls looked.
func (s *Site) learn(r *run, worker int) {
	s.likely = true
	on := r.lease.Mark()
	if s.on == on || r.shelf == nil {
		return
	}
	s.on = on
	l := &s.lines
	l.Reset()
	if r.payer != nil {
		r.payer.Lines(l)
	}
	r.shelf.Lines(&s.memo, worker, l)
	l.Add(unsafe.Pointer(r.share), unsafe.Sizeof(*r.share))
	r.lease.Lines(l)
}
