package prefetch

import "unsafe"

const (
	listLines = 88
	line      = 64
)

// List is places in memory that will be used together, one after the other: each would be waited for. Asked for at
// once, they arrive together. It keeps nothing alive, and what is there by then does not matter.
type List struct {
	n  int
	at [listLines]uintptr
}

// Reset makes it empty.
func (l *List) Reset() { l.n = 0 }

// Add puts the lines of some bytes at p on the list, as long as there is room.
func (l *List) Add(p unsafe.Pointer, bytes uintptr) {
	if p == nil || bytes == 0 {
		return
	}
	from := uintptr(p) &^ (line - 1)
	for at := from; at < uintptr(p)+bytes && l.n < listLines; at += line {
		l.at[l.n] = at
		l.n++
	}
}
