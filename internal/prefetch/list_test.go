package prefetch

import (
	"testing"
	"unsafe"
)

func TestAListHasEveryLineThatBytesLieOn(t *testing.T) {
	room := make([]byte, 512)
	start := uintptr(unsafe.Pointer(&room[0]))
	first := int(-start & (line - 1)) // where a line begins
	for _, c := range []struct{ at, bytes, want int }{{0, 0, 0}, {0, 1, 1}, {0, line, 1}, {0, line + 1, 2}, {line - 1, 2, 2}, {1, 2 * line, 3}} {
		var l List
		l.Add(unsafe.Pointer(&room[first+c.at]), uintptr(c.bytes))
		if l.n != c.want {
			t.Errorf("%d bytes at %d: %d lines, want %d", c.bytes, c.at, l.n, c.want)
		}
		l.Fetch()
	}
}

func TestAListTakesNoMoreThanItHasRoomFor(t *testing.T) {
	var l List
	room := make([]byte, 2*listLines*line)
	l.Add(unsafe.Pointer(&room[0]), uintptr(len(room)))
	l.Add(nil, 64)
	if l.n != listLines {
		t.Errorf("%d lines", l.n)
	}
	l.Fetch()
}
