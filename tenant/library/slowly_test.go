package library

import (
	"context"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/tenant/library/librarytest"
)

// slowBook gives no code of large modules before it may.
type slowBook struct {
	Book
	may chan struct{}
}

func (b slowBook) Code(ctx context.Context, s Sum) ([]byte, error) {
	code, err := b.Book.Code(ctx, s)
	if len(code) > quietBytes {
		<-b.may
	}
	return code, err
}

func TestALargeModuleThatTakesLongToCompileHoldsUpNoSmallOne(t *testing.T) {
	dir := t.TempDir()
	l := openLibrary(t, dir, nil)
	install(t, l.shelf(100, "small"), "m", librarytest.Module("hello", "f"))
	large := make([]*Shelf, compilers())
	for i := range large {
		large[i] = l.shelf(Owner(200+i), "large")
		install(t, large[i], "m", librarytest.Module(strings.Repeat("x", quietBytes+i), "f"))
	}
	l.Close()
	may := make(chan struct{})
	l = openLibrary(t, dir, func(o *Options) { o.Book = slowBook{o.Book, may} })
	ready := make(chan error, len(large))
	for i := range large {
		l.shelf(Owner(200+i), "large").Find([]byte("f")).Prepare(func(err error) { ready <- err })
	}
	mustCall(t, l.shelf(100, "small"), "f", "hello")
	close(may)
	for range large {
		must(t, <-ready)
	}
}
