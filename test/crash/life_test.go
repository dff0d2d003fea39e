package crash

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ostrodb/ostro/test/harness"
)

// life is a data directory and those who write to it.
type life struct {
	t      *testing.T
	kind   kind
	rng    *rand.Rand
	budget *budget
	root   string // holds data, and blob if there is such a tier

	durability string
	server     *harness.Server
	startMs    int64 // how long the last start took

	clients  []client
	writers  []*writer
	bank     bank
	flushing *flusher
	trail    []string // what happened, for the report
}

func newLife(t *testing.T, k kind, seed uint64, b *budget) *life {
	t.Helper()
	l := &life{t: t, kind: k, rng: rand.New(rand.NewPCG(seed, 0)), budget: b}
	l.root = filepath.Join(scratch, fmt.Sprintf("%s-%d", k.name, seed))
	if err := os.MkdirAll(filepath.Join(l.root, "blob"), 0o700); err != nil {
		t.Fatal(err)
	}
	l.bank.held = map[string]int{}
	n := uint64(1)
	source := func() *rand.Rand { n++; return rand.New(rand.NewPCG(seed, n)) }
	for i := range k.writers {
		w := newWriter(i, source(), k.mix)
		w.books = l.books
		l.writers = append(l.writers, w)
		l.clients = append(l.clients, w)
	}
	for i := range k.transfers {
		m := newTransfer(i, source())
		l.bank.users = append(l.bank.users, m)
		l.clients = append(l.clients, m)
	}
	clock := new(hours)
	l.flushing = &flusher{rng: source(), clock: clock}
	for i := range k.setters {
		s := newSetter(i, source(), clock)
		l.flushing.setters = append(l.flushing.setters, s)
		l.clients = append(l.clients, s)
	}
	if k.setters > 0 {
		l.clients = append(l.clients, l.flushing)
	}
	return l
}

func (l *life) books() []*ledger {
	var all []*ledger
	for _, c := range l.clients {
		all = append(all, c.book())
	}
	return all
}

// logged tells whether every acknowledged write survives a kill.
func (l *life) logged() bool { return l.durability == "everysec" || l.durability == "always" }

func (l *life) note(format string, args ...any) {
	l.trail = append(l.trail, fmt.Sprintf(format, args...))
}

// fail reports what was found, with everything that helps to find out why.
func (l *life) fail(err error) {
	l.t.Helper()
	l.server.Kill()
	trail := ""
	for _, s := range l.trail {
		trail += "\n  " + s
	}
	l.t.Fatalf("%s: %v\nlife:%s\nthe directory as the last kill left it: %s\nserver's log:\n%s", l.kind.name, err, trail, l.before(), tail(l.server.Log(), 4000))
}

func tail(s string, n int) string { return s[max(len(s)-n, 0):] }

// before is where the directory is copied to, as a kill left it.
func (l *life) before() string { return l.root + ".before" }

func (l *life) data() string { return filepath.Join(l.root, "data") }

// launch starts a server on the directory. Its durability may change from one
// start to the next.
func (l *life) launch() {
	l.durability = l.kind.durability[l.rng.IntN(len(l.kind.durability))]
	args := append([]string{"--dir", l.data(), "--durability", l.durability, "--checkpoint-every", "0"}, l.kind.args...)
	if len(l.kind.vary) > 0 {
		args = append(args, l.kind.vary[l.rng.IntN(len(l.kind.vary))]...)
	}
	if l.kind.blob {
		args = append(args, "--blob-url", "file://"+filepath.Join(l.root, "blob"))
	}
	l.server = harness.Launch(l.t, binary, args...)
}

// start starts a server and waits until it serves.
func (l *life) start() {
	l.t.Helper()
	began := time.Now()
	l.launch()
	if err := l.server.Ready(); err != nil {
		l.fail(err)
	}
	l.startMs = time.Since(began).Milliseconds()
}

// keep copies the directory, for recovery will change it.
func (l *life) keep() {
	l.t.Helper()
	if err := os.RemoveAll(l.before()); err != nil {
		l.t.Fatal(err)
	}
	if out, err := exec.Command("cp", "-a", "--reflink=auto", "--sparse=always", l.root, l.before()).CombinedOutput(); err != nil {
		l.t.Fatalf("copy the data directory: %v\n%s", err, out)
	}
}

// check lets `ostro check` look at the directory of a dead server.
func (l *life) check() {
	l.t.Helper()
	if out, err := exec.Command(binary, "check", l.data()).CombinedOutput(); err != nil {
		l.keep()
		l.fail(fmt.Errorf("ostro check: %w\n%s", err, out))
	}
}

// verify reads everything back. logged says what the last server promised.
func (l *life) verify(logged bool) {
	l.t.Helper()
	c, err := l.server.Dial()
	if err != nil {
		l.fail(err)
	}
	defer c.Close()
	for _, w := range l.writers {
		if err := w.verify(c, w.least(logged)); err != nil {
			l.fail(err)
		}
	}
	if err := errors.Join(l.bank.verify(c, logged), l.flushing.verify(c, logged)); err != nil {
		l.fail(err)
	}
}

// load is the clients at work.
type load struct {
	l     *life
	conns []*harness.Conn
	wg    sync.WaitGroup
	mu    sync.Mutex
	errs  []error
	ended chan struct{} // closed when a client ended by itself
	once  sync.Once
}

// load lets all clients run.
func (l *life) load() *load {
	l.t.Helper()
	ld := &load{l: l, ended: make(chan struct{})}
	for _, cl := range l.clients {
		c, err := l.server.Dial()
		if err != nil {
			l.fail(err)
		}
		ld.conns = append(ld.conns, c)
		ld.wg.Go(func() {
			err := cl.run(c, l.logged())
			ld.mu.Lock()
			ld.errs = append(ld.errs, err)
			ld.mu.Unlock()
			ld.once.Do(func() { close(ld.ended) })
		})
	}
	return ld
}

// join waits for the clients, whose server is dead or who were told to stop.
func (ld *load) join() {
	ld.l.t.Helper()
	ld.wg.Wait()
	for _, c := range ld.conns {
		c.Close()
	}
	if err := errors.Join(ld.errs...); err != nil {
		if errors.Is(err, errHung) {
			err = errors.Join(err, ld.l.server.Hung("answer"))
		}
		ld.l.fail(err)
	}
}

// last waits for d, or until a client ended although its server lives.
func (ld *load) last(d time.Duration) {
	ld.l.t.Helper()
	select {
	case <-time.After(d):
		return
	case <-ld.ended:
	}
	for _, c := range ld.l.clients {
		c.stop()
	}
	ld.join()
	ld.l.fail(errors.New("the server closed a connection"))
}

// progress is how many operations were acknowledged so far.
func (l *life) progress() (n int64) {
	for _, c := range l.clients {
		n += c.book().acknowledged.Load()
	}
	return n
}
