package library

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ostrodb/ostro/tenant/extension"
	"github.com/ostrodb/ostro/tenant/library/librarytest"
)

// bombs are modules of tenants that are compiled until they may end.
type bombs struct {
	tenants map[string]bool
	began   chan string
	end     chan struct{}
}

func newBombs(tenants ...string) *bombs {
	b := &bombs{map[string]bool{}, make(chan string, 100), make(chan struct{})}
	for _, name := range tenants {
		b.tenants[name] = true
	}
	return b
}

// open opens a library in memory whose compiler takes its time for them.
func (b *bombs) open(t *testing.T, book Book) *Library {
	return openLibrary(t, "", func(o *Options) {
		if book != nil {
			o.Book = book
		}
		o.Pool = func(tenant string) extension.PoolOptions {
			if b.tenants[tenant] {
				b.began <- tenant
				<-b.end
			}
			return extension.PoolOptions{}
		}
	})
}

// installing installs a module in the background.
func installing(s *Shelf, code []byte) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := s.Install(context.Background(), Package{"m", code}, true)
		done <- err
	}()
	return done
}

func TestAStopWaitsForNoCompiler(t *testing.T) {
	book, err := OpenFiles("")
	must(t, err)
	first := openLibrary(t, "", func(o *Options) { o.Book = book })
	install(t, first.shelf(1, "called"), "m", librarytest.Module("1", "f"))
	b := newBombs("called", "installs")
	defer close(b.end)
	l := b.open(t, book)
	called := make(chan error, 1)
	l.shelf(1, "called").Find([]byte("f")).Prepare(func(err error) { called <- err })
	installed := installing(l.shelf(2, "installs"), librarytest.Module("2", "f"))
	<-b.began
	<-b.began
	waits := installing(l.shelf(2, "installs"), librarytest.Module("3", "f"))
	l.Close()
	for what, done := range map[string]<-chan error{"who calls": called, "who installs": installed, "who waits to install": waits} {
		if err := <-done; !errors.Is(err, errClosed) {
			t.Errorf("%s hears %v", what, err)
		}
	}
	if err := <-installing(l.shelf(3, "late"), librarytest.Module("4", "f")); !errors.Is(err, errClosed) {
		t.Errorf("who installs after the stop hears %v", err)
	}
}

func TestAStopTellsWhoWaitsBehindAnotherModuleOfItsTenant(t *testing.T) {
	book, err := OpenFiles("")
	must(t, err)
	before := openLibrary(t, "", func(o *Options) { o.Book = book })
	for _, f := range []string{"f", "g"} {
		install(t, before.shelf(1, "called"), f, librarytest.Module(f, f))
	}
	before.Close()
	synctest.Test(t, func(t *testing.T) {
		b := newBombs("called")
		l := b.open(t, book)
		told := make(chan error, 2)
		for _, f := range []string{"f", "g"} {
			l.shelf(1, "called").Find([]byte(f)).Prepare(func(err error) { told <- err })
		}
		<-b.began
		l.Close()
		for range 2 {
			if err := <-told; !errors.Is(err, errClosed) {
				t.Errorf("who calls hears %v", err)
			}
		}
		close(b.end)
	})
}

func TestWhoInstallsWhatTakesLongHoldsUpOthersForAWhileOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBombs("bad")
		for i := range compilers() {
			b.tenants[fmt.Sprint("bad", i)] = true
		}
		l := b.open(t, nil)
		defer l.Close()
		bad := l.shelf(1, "bad")
		var first []<-chan error
		for i := range compilers() { // All of them are at it.
			name := fmt.Sprint("bad", i)
			first = append(first, installing(l.shelf(Owner(10+i), name), librarytest.Module(name, "f")))
		}
		synctest.Wait()
		began := time.Now()
		second := installing(bad, librarytest.Module("next", "f"))
		install(t, l.shelf(2, "good"), "m", librarytest.Module("fine", "f"))
		if waited := time.Since(began); waited > 2*compilePatience {
			t.Errorf("another tenant has waited for %v", waited)
		}
		close(b.end)
		for _, done := range append(first, second) {
			must(t, <-done)
		}
		mustCall(t, bad, "f", "next")
	})
}

func TestWhoCallsWhatTakesLongToCompileHoldsUpOthersForAWhileOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book, err := OpenFiles("")
		must(t, err)
		before := openLibrary(t, "", func(o *Options) { o.Book = book })
		b := newBombs()
		for i := range compilers() {
			b.tenants[fmt.Sprint("bad", i)] = true
		}
		for name := range b.tenants {
			for _, f := range []string{"f", "g"} {
				install(t, before.shelf(ownerOf(name), name), f, librarytest.Module(name+f, f))
			}
		}
		install(t, before.shelf(ownerOf("good"), "good"), "m", librarytest.Module("fine", "f"))
		before.Close()
		l := b.open(t, book)
		defer l.Close()
		var all sync.WaitGroup
		for name := range b.tenants {
			for _, f := range []string{"f", "g"} {
				all.Go(func() { mustCall(t, l.shelf(ownerOf(name), name), f, name+f) })
			}
		}
		synctest.Wait()
		began := time.Now()
		mustCall(t, l.shelf(ownerOf("good"), "good"), "f", "fine")
		if waited := time.Since(began); waited > compilePatience {
			t.Errorf("another tenant has waited for %v", waited)
		}
		if n := len(b.began); n != compilers() {
			t.Errorf("%d are compiled for %d tenants: each may have one at a time", n, compilers())
		}
		close(b.end)
		all.Wait()
	})
}

func ownerOf(name string) Owner {
	o := Owner(1)
	for _, c := range name {
		o = o*31 + Owner(c)
	}
	return o
}

func TestOnlySomeCompilationsRunOnBesideOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &Library{}
		l.running.init()
		end := make(chan struct{})
		var passed atomic.Int64
		var all sync.WaitGroup
		for range overdueMost + 2 {
			c := l.begin(func() (*warm, error) { <-end; return nil, nil })
			all.Go(func() { l.attend(c, func() { passed.Add(1) }) })
			time.Sleep(time.Millisecond)
		}
		time.Sleep(10 * compilePatience)
		synctest.Wait()
		if passed.Load() != overdueMost {
			t.Errorf("the turns of %d were passed on, want %d", passed.Load(), overdueMost)
		}
		close(end)
		all.Wait()
		if passed.Load() != overdueMost+2 {
			t.Errorf("in the end the turns of %d were passed on, want those of all", passed.Load())
		}
	})
}

func TestWhatNobodyWaitsForAnyMoreIsBuried(t *testing.T) {
	b := newBombs("gone")
	l := b.open(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	s := l.shelf(1, "gone")
	go func() {
		_, err := s.Install(ctx, Package{"m", librarytest.Module("1", "f")}, true)
		done <- err
	}()
	<-b.began
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("who gives up hears %v", err)
	}
	close(b.end)
	install(t, s, "m", librarytest.Module("2", "f")) // It waits for the one before: a tenant has one at a time.
	mustCall(t, s, "f", "2")
	l.warm.mu.Lock()
	defer l.warm.mu.Unlock()
	if len(l.warm.editions) != 1 {
		t.Errorf("%d modules are ready, want one", len(l.warm.editions))
	}
}

func TestManyCoresDoNotMeanManyCompilations(t *testing.T) {
	for cores, most := range map[int]int{1: 8, 2: 8, 3: 8, 4: 12, 16: 12, 256: 12} {
		if n := 4*compilersOf(cores) + overdueMost; n != most { // Two desks, two queues, and those that take too long.
			t.Errorf("with %d cores %d modules are compiled at a time, want %d", cores, n, most)
		}
	}
}
