package wasm

import "fmt"

// Most is how many of each a module may have; zero: as many as fit into its bytes. What takes a byte or two there may
// take a hundred in memory, here and in the compiler.
type Most struct {
	Types           int
	Functions       int // and imports
	Tables          int
	Globals         int
	Exports         int
	ElementSegments int
	Elements        int // in all segments together
	DataSegments    int
	Customs         int
}

// LimitError is a module that is too large in some way.
type LimitError struct {
	What      string
	Has, Most int
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the module has %d %s, and the limit is %d", e.Has, e.What, e.Most)
}

// within ends decoding if there are more than may be.
func (d *decoder) within(what string, has, most int) {
	if r := d.r; most > 0 && has > most && r.err == nil {
		r.err, r.at = &LimitError{what, has, most}, len(r.b)
	}
}
