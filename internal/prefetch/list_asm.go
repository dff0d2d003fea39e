//go:build amd64 || arm64

package prefetch

// Fetch asks for everything on the list.
func (l *List) Fetch() {
	if l.n > 0 {
		all(&l.at[0], l.n)
	}
}

// Stack asks for what lies below on the goroutine's stack: that of one that has waited is far away, too.
//
//go:noescape
func Stack(bytes int)

// all asks for n lines.
//
//go:noescape
func all(at *uintptr, n int)
