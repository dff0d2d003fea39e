package library

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/tenant/extension"
	"github.com/ostrodb/ostro/tenant/extension/local"
	"github.com/ostrodb/ostro/tenant/library/librarytest"
)

// openLibrary opens a library on a directory, or in memory, until the test ends.
func openLibrary(t testing.TB, dir string, change func(*Options)) *Library {
	t.Helper()
	book, err := OpenFiles(dir)
	must(t, err)
	o := Options{Book: book}
	if dir != "" {
		o.CacheDir = dir + "/cache"
	}
	if change != nil {
		change(&o)
	}
	l, err := Open(t.Context(), o)
	must(t, err)
	t.Cleanup(l.Close)
	return l
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func install(t testing.TB, s *Shelf, name string, code []byte) Entry {
	t.Helper()
	e, err := s.Install(t.Context(), Package{name, code}, true)
	must(t, err)
	return e
}

// call calls a function as a front door does: it waits until it is ready, and looks again when it was replaced.
func call(s *Shelf, name string) (string, error) {
	for {
		f := s.Find([]byte(name))
		if f == nil {
			return "", ErrUnknown
		}
		pool, err := f.Pool()
		if errors.Is(err, ErrCold) {
			ready := make(chan error, 1)
			f.Prepare(func(err error) { ready <- err })
			if err := <-ready; err != nil && !errors.Is(err, ErrGone) {
				return "", err
			}
			continue
		}
		if errors.Is(err, ErrGone) {
			continue
		}
		r, err := pool.Call(&extension.Invocation{Function: name, Store: local.New(time.Now)})
		if errors.Is(err, extension.ErrClosed) {
			continue
		}
		f.Note(0, &r, err, time.Microsecond)
		return string(r.Response), err
	}
}

func mustCall(t testing.TB, s *Shelf, name, want string) {
	t.Helper()
	if got, err := call(s, name); err != nil || got != want {
		t.Fatalf("%s answers %q, %v; want %q", name, got, err, want)
	}
}

func TestAModuleIsInstalledReplacedAndDeleted(t *testing.T) {
	s := openLibrary(t, "", nil).Shelf(nil)
	if s.Find([]byte("hello")) != nil {
		t.Fatal("a function is there before it was installed")
	}
	install(t, s, "greeter", librarytest.Module("one", "hello", "bye"))
	mustCall(t, s, "hello", "one")
	if _, err := s.Install(t.Context(), Package{"greeter", librarytest.Module("two", "hello")}, false); !errors.Is(err, ErrExists) {
		t.Errorf("a second one of the same name: %v", err)
	}
	mustCall(t, s, "hello", "one")
	if e := install(t, s, "greeter", librarytest.Module("two", "hello")); e.Version != 2 {
		t.Errorf("the second version is version %d", e.Version)
	}
	mustCall(t, s, "hello", "two")
	if s.Find([]byte("bye")) != nil {
		t.Error("a function is there that the new version does not have")
	}
	u := s.Usage()
	if len(u) != 1 || u[0].Counts.Calls != 3 || !u[0].Ready {
		t.Errorf("usage %+v", u)
	}
	must(t, s.Delete(t.Context(), "greeter"))
	if err := s.Delete(t.Context(), "greeter"); !errors.Is(err, ErrUnknown) || s.Find([]byte("hello")) != nil {
		t.Errorf("deleted, and again: %v", err)
	}
}

func TestUsageOfOneModuleIsThatOfTheList(t *testing.T) {
	s := openLibrary(t, t.TempDir(), nil).Shelf(nil)
	install(t, s, "a", librarytest.Module("a", "f", "g"))
	install(t, s, "b", librarytest.Module("b", "h"))
	mustCall(t, s, "g", "a")
	for _, want := range s.Usage() {
		if got, ok := s.UsageOf(want.Name); !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v; in the list %+v", got, ok, want)
		}
	}
	if _, ok := s.UsageOf("c"); ok {
		t.Error("it tells of a module that is not there")
	}
	if n := s.total(); n.Modules != 2 || n.Functions != 3 || n.Counts.Calls != 1 || n.Ready != 2 {
		t.Errorf("in all %+v", n)
	}
}

func TestATenantsLongAnswersAreMadeOneAfterTheOther(t *testing.T) {
	s := openLibrary(t, t.TempDir(), nil).Shelf(nil)
	var at, told atomic.Int64
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			must(t, s.Tell(t.Context(), func() error {
				if n := at.Add(1); n > 1 {
					t.Errorf("%d at a time", n)
				}
				runtime.Gosched()
				at.Add(-1)
				told.Add(1)
				return nil
			}))
		})
	}
	all.Wait()
	if told.Load() != 20 {
		t.Errorf("%d were told", told.Load())
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	must(t, s.Tell(t.Context(), func() error {
		if err := s.Tell(gone, func() error { return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("who has gone while another is told hears %v", err)
		}
		return nil
	}))
}

func TestReplacementWhileCallsRunAnswersOldThenNewAndNothingElse(t *testing.T) {
	s := openLibrary(t, t.TempDir(), nil).Shelf(nil)
	const versions = 12
	install(t, s, "m", librarytest.Module("v1", "f"))
	var over atomic.Bool
	var callers sync.WaitGroup
	for range 3 {
		callers.Go(func() {
			last := 0
			for !over.Load() || last < versions {
				got, err := call(s, "f")
				var v int
				if _, scanErr := fmt.Sscanf(got, "v%d", &v); err != nil || scanErr != nil || v < last {
					t.Errorf("after v%d: %q, %v", last, got, err)
					return
				}
				last = v
			}
		})
	}
	for v := 2; v <= versions; v++ {
		install(t, s, "m", librarytest.Module(fmt.Sprint("v", v), "f"))
	}
	over.Store(true)
	callers.Wait()
	if n := s.Usage()[0].Version; n != versions {
		t.Errorf("version %d", n)
	}
}

func TestWhatIsInstalledIsThereAfterARestartAndComesFromTheCache(t *testing.T) {
	dir := t.TempDir()
	first := openLibrary(t, dir, nil)
	install(t, first.Shelf(nil), "greeter", librarytest.Module("one", "hello"))
	install(t, first.shelf(70000, "anna"), "greeter", librarytest.Module("two", "hello"))
	first.Close()
	again := openLibrary(t, dir, nil)
	if m, _ := again.warm.count(); m != 0 {
		t.Errorf("%d modules are compiled at the start", m)
	}
	mustCall(t, again.Shelf(nil), "hello", "one")
	mustCall(t, again.shelf(70000, "anna"), "hello", "two")
	if e := again.Shelf(nil).Entries(); len(e) != 1 || e[0].Version != 1 || e[0].Name != "greeter" {
		t.Errorf("entries %+v", e)
	}
}

func TestTenantsSeeTheirOwnFunctionsOnly(t *testing.T) {
	l := openLibrary(t, "", nil)
	anna, bert := l.shelf(70000, "anna"), l.shelf(70001, "bert")
	code := librarytest.Module("anna's", "hello")
	install(t, anna, "greeter", code)
	if bert.Find([]byte("hello")) != nil || len(bert.Entries()) != 0 || len(bert.Usage()) != 0 {
		t.Error("one sees another's")
	}
	if _, err := bert.Code(t.Context(), "greeter"); !errors.Is(err, ErrUnknown) {
		t.Errorf("one reads another's code: %v", err)
	}
	if _, ok := bert.Logs("greeter", 0, Debug, 10); ok {
		t.Error("one reads another's log")
	}
	if err := bert.Delete(t.Context(), "greeter"); !errors.Is(err, ErrUnknown) {
		t.Errorf("one deletes another's: %v", err)
	}
	install(t, bert, "greeter", librarytest.Module("bert's", "hello"))
	mustCall(t, anna, "hello", "anna's")
	mustCall(t, bert, "hello", "bert's")
	must(t, bert.Flush(t.Context()))
	mustCall(t, anna, "hello", "anna's")
}

func TestCodeIsKeptOnceAndAsLongAsSomebodyHasIt(t *testing.T) {
	dir := t.TempDir()
	l := openLibrary(t, dir, nil)
	code := librarytest.Module("same", "hello")
	anna, bert := l.shelf(70000, "anna"), l.shelf(70001, "bert")
	install(t, anna, "a", code)
	install(t, bert, "b", code)
	if n := codeFiles(t, dir); n != 1 {
		t.Errorf("%d files of code", n)
	}
	must(t, anna.Delete(t.Context(), "a"))
	mustCall(t, bert, "hello", "same")
	install(t, bert, "b", librarytest.Module("other", "hello"))
	if n := codeFiles(t, dir); n != 1 {
		t.Errorf("%d files of code after it was replaced", n)
	}
	must(t, bert.Flush(t.Context()))
	if n := codeFiles(t, dir); n != 0 {
		t.Errorf("%d files of code of nobody", n)
	}
}

func codeFiles(t *testing.T, dir string) (n int) {
	t.Helper()
	files, err := os.ReadDir(dir)
	must(t, err)
	for _, f := range files {
		if strings.HasSuffix(f.Name(), codeSuffix) {
			n++
		}
	}
	return n
}

func TestWhatADeletedTenantHadIsTakenAway(t *testing.T) {
	dir := t.TempDir()
	var gone atomic.Bool
	changed := make(chan struct{})
	l := openLibrary(t, dir, func(o *Options) {
		o.Gone = func(o Owner) bool { return gone.Load() && o == 70000 }
		o.Changed = func() <-chan struct{} {
			if gone.Load() {
				return nil
			}
			return changed
		}
	})
	install(t, l.shelf(70000, "anna"), "a", librarytest.Module("x", "hello"))
	install(t, l.Shelf(nil), "a", librarytest.Module("y", "hello"))
	gone.Store(true)
	close(changed)
	await.True(t, "its code is gone", func() bool { return codeFiles(t, dir) == 1 })
	mustCall(t, l.Shelf(nil), "hello", "y")
}

func TestIdleModulesAreForgottenAndComeBack(t *testing.T) {
	l := openLibrary(t, t.TempDir(), func(o *Options) { o.Warm = 3 })
	s := l.Shelf(nil)
	for i := range 10 {
		install(t, s, fmt.Sprint("m", i), librarytest.Module(fmt.Sprint("answer", i), fmt.Sprint("f", i)))
	}
	now := l.tick.Add(100)
	mustCall(t, s, "f7", "answer7")
	l.tend(now)
	l.tend(now) // Graves are empty by now.
	if m, _ := l.warm.count(); m != 3 || l.warm.buried() != 0 {
		t.Errorf("%d modules are compiled, %d are not forgotten", m, l.warm.buried())
	}
	if w := s.Find([]byte("f7")).edition.warm.Load(); w == nil {
		t.Error("the one that is used was forgotten")
	}
	l.tend(l.tick.Add(10_000))
	if m, _ := l.warm.count(); m != 0 {
		t.Errorf("%d modules are compiled after hours", m)
	}
	for i := range 10 {
		mustCall(t, s, fmt.Sprint("f", i), fmt.Sprint("answer", i))
	}
}

func TestAModuleThatIsCalledWhileItIsForgottenIsKnownToBeWarm(t *testing.T) {
	l := openLibrary(t, t.TempDir(), nil)
	s := l.Shelf(nil)
	install(t, s, "m", librarytest.Module("answer", "f"))
	e := s.Find([]byte("f")).edition
	old := e.cool()
	mustCall(t, s, "f", "answer")
	l.warm.bury(e, old)
	if m, _ := l.warm.count(); m != 1 {
		t.Errorf("%d modules are known to be warm", m)
	}
}

// gate holds a call up where it first uses the store.
type gate struct {
	once    sync.Once
	entered chan struct{}
	leave   chan struct{}
}

func (*gate) Aloud(f func()) { f() }

func (g *gate) Yield(why extension.Reason) error {
	if why == extension.StoreUse {
		g.once.Do(func() {
			close(g.entered)
			<-g.leave
		})
	}
	return nil
}

func TestACallThatRunsGoesOnWhenItsModuleIsDeleted(t *testing.T) {
	l := openLibrary(t, "", nil)
	s := l.Shelf(nil)
	install(t, s, "rank", readExample(t, "rank"))
	f := s.Find([]byte("rank_add"))
	pool, err := f.Pool()
	must(t, err)
	g := &gate{entered: make(chan struct{}), leave: make(chan struct{})}
	ended := make(chan error)
	go func() {
		_, err := pool.Call(&extension.Invocation{
			Function: "rank_add", Keys: [][]byte{[]byte("board")}, Args: [][]byte{[]byte("anna"), []byte("10")}, Store: local.New(time.Now), Turns: g,
		})
		ended <- err
	}()
	<-g.entered
	must(t, s.Delete(context.Background(), "rank"))
	l.tend(l.tick.Add(1))
	if l.warm.buried() != 1 {
		t.Error("the code of a call that runs is forgotten")
	}
	close(g.leave)
	if err := <-ended; err != nil {
		t.Errorf("the call that ran: %v", err)
	}
	l.tend(l.tick.Add(1))
	if l.warm.buried() != 0 {
		t.Error("the code is still there when the call has ended")
	}
	if _, err := f.Pool(); !errors.Is(err, ErrGone) {
		t.Errorf("a deleted function's pool: %v", err)
	}
	f.Prepare(func(err error) {
		if !errors.Is(err, ErrGone) {
			t.Errorf("a deleted function is made ready: %v", err)
		}
	})
}

func (s *warmSet) buried() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.graves)
}

func readExample(t testing.TB, name string) []byte {
	t.Helper()
	code, err := os.ReadFile("../../examples/functions/" + name + ".wasm")
	must(t, err)
	return code
}
