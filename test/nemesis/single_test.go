package nemesis

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/internal/port"
	"github.com/ostrodb/ostro/test/harness"
)

// lone is one server that comes back at the same address.
type lone struct {
	t    *testing.T
	args []string
	*harness.Server
}

func startLone(t *testing.T, durability string) *lone {
	t.Helper()
	dir := filepath.Join(scratch, strings.ReplaceAll(t.Name(), "/", "-"))
	t.Cleanup(func() {
		if !t.Failed() {
			_ = os.RemoveAll(dir)
		}
	})
	l := &lone{t: t, args: []string{"--dir", dir, "--durability", durability, "--port", port.For(t).Addr()[len("127.0.0.1:"):]}}
	l.start()
	return l
}

func (l *lone) start() {
	l.t.Helper()
	l.Server = harness.Launch(l.t, binary, l.args...)
	if err := l.Ready(); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lone) addr() string { return "127.0.0.1:" + l.args[len(l.args)-1] }

func (l *lone) load(seed uint64) *Load {
	return StartLoad(LoadOptions{Seed: seed, Addrs: []string{l.addr()}, Clients: 6, Bulks: 1, Width: 2})
}

// harass kills the server a few times under load.
func (l *lone) harass(seed uint64, kills int) *Load {
	load := l.load(seed)
	for range kills {
		l.untilAnswers(load, 300)
		l.Kill()
		l.start()
	}
	l.untilAnswers(load, 100)
	load.Stop()
	return load
}

// untilAnswers waits until clients got some more answers.
func (l *lone) untilAnswers(load *Load, more int) { l.until("clients get answers", load.Answers, more) }

// untilWrites waits until the bulk writer got some more.
func (l *lone) untilWrites(load *Load, more int) {
	l.until("the bulk writer gets answers", load.Writes, more)
}

func (l *lone) until(what string, count func() int, more int) {
	l.t.Helper()
	enough := count() + more
	err := harness.Eventually(what, func() error {
		if got := count(); got < enough {
			return fmt.Errorf("they got %d of %d", got, enough)
		}
		return nil
	})
	if err != nil {
		l.t.Fatalf("%v\n%s", err, l.Log())
	}
}

func TestOneServerThatIsKilledExplainsAllItsAnswers(t *testing.T) {
	l := startLone(t, "everysec")
	load := l.harass(seedOf(t), 3)
	if err := load.Check(); err != nil {
		t.Fatal(err)
	}
	t.Log(load)
}

// Whatever finds nothing wrong here would find nothing wrong anywhere.
func TestAServerThatForgetsIsFoundOut(t *testing.T) {
	l := startLone(t, "none")
	load := l.load(seedOf(t))
	l.untilAnswers(load, 300)
	l.untilWrites(load, perTag)
	load.Stop() // What is written after the death would hide what is missing since.
	l.Kill()
	l.start()
	err := load.Check()
	if err == nil {
		t.Fatal("a server that keeps nothing was killed, and nobody missed anything")
	}
	for _, want := range []string{"no order of", "ledger of a bulk writer"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("it is not told that there is %q:\n%v", want, err)
		}
	}
}
