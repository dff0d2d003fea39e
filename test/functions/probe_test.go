package functions

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ostrodb/ostro/sdk"
	"github.com/ostrodb/ostro/tenant/extension"
)

// The same small functions in every language, built as users build theirs.
func TestEverySDKReachesEveryCallOfTheHost(t *testing.T) {
	sources := map[string]string{"c": "probe.c", "rust": "probe.rs", "as": "probe.ts", "go": "probe.go"}
	for _, l := range sdk.Languages() {
		t.Run(l.Name, func(t *testing.T) {
			needs(t, l.Name)
			t.Parallel()
			dir := t.TempDir()
			if _, err := sdk.New(dir, "probe", l); err != nil {
				t.Fatal(err)
			}
			source, err := os.ReadFile(filepath.Join("testdata", sources[l.Name]))
			if err != nil {
				t.Fatal(err)
			}
			to := filepath.Join(dir, strings.ReplaceAll(l.Source, "NAME", "probe"))
			if err := os.WriteFile(to, source, 0o644); err != nil {
				t.Fatal(err)
			}
			run(t, dir, "make")
			module, err := os.ReadFile(filepath.Join(dir, "probe.wasm"))
			if err != nil {
				t.Fatal(err)
			}
			p := &probe{t, newGuest(t, module)}
			p.arguments()
			p.reads()
			p.writes()
			p.scans()
			p.rest()
			p.failures(l.Name)
			p.memory()
		})
	}
}

type probe struct {
	*testing.T
	*guest
}

// framed is how probes answer with bytes.
func framed(pieces ...string) string {
	var b strings.Builder
	for _, p := range pieces {
		fmt.Fprintf(&b, "%d:%s;", len(p), p)
	}
	return b.String()
}

func (p *probe) same(want, function, key string, args ...any) {
	p.Helper()
	if got := p.call(p, function, key, args...); got != want {
		p.Fatalf("%s %s: %.200q, want %.200q", function, key, got, want)
	}
}

var (
	large = strings.Repeat("a large value ", 20_000)
	some  = strings.Repeat("some ", 300)
)

func (p *probe) arguments() {
	p.same("|", "args", "")
	p.same(framed("key")+"|"+framed("", "a", "\x00\xff"), "args", "key", "", "a", "\x00\xff")
	p.same(framed(some)+"|"+framed(large, "b"), "args", some, large, "b")
}

func (p *probe) reads() {
	p.data = table{"empty": "", "short": "value", "some": some, "large": large}
	p.same("absent", "get", "missing", 0)
	p.same("absent", "get", large[:60_000], 0)
	for key, value := range p.data {
		p.same(framed(value), "get", key, 0)
	}
	p.same("", "multiget", "")
	p.same(framed("value")+"absent;"+framed("", large, some, "value", large), "multiget", "",
		"short", "missing", "empty", "large", "some", "short", "large")
	p.refused(p, 242, "get", "short", 7) // There is no table 7.
}

func (p *probe) writes() {
	p.data = table{}
	p.same(framed("one two\x00\x00"), "build", "built", 0, "one ", "two")
	p.same(framed(large+"\x00\x00"), "build", "large", 1500, large)
	if p.data["built"] != "one two\x00\x00" || p.data["large"] != large+"\x00\x00" || p.ttl["large"] != 1500*time.Millisecond {
		p.Fatalf("the store has %.200q, expiry %v", p.data, p.ttl)
	}
	p.same("", "del", "built")
	if _, there := p.data["built"]; there || p.data["beside"] != "built" || p.ttl["beside"] != 7*time.Millisecond {
		p.Fatalf("the store has %.200q, expiry %v", p.data, p.ttl)
	}
	_, err := p.invoke(&extension.Invocation{Function: "del", Keys: [][]byte{[]byte("beside")}, ReadOnly: true})
	var failed *extension.CallError
	if !errors.As(err, &failed) || failed.Code != 242 {
		p.Fatalf("a write of a call that reads only: %v", err)
	}
}

func (p *probe) scans() {
	p.data = table{"other": "x"}
	p.same("0", "scan", "user:")
	var entries []string
	for i := range 100 {
		key, value := fmt.Sprintf("user:%02d", i), strings.Repeat("v", i)
		p.data[key] = value
		entries = append(entries, framed(key, value))
	}
	p.data["user:huge"] = large
	got, _ := strings.CutSuffix(p.call(p, "scan", "user:"), "1")
	seen := strings.SplitAfter(got, ";")
	var pairs []string
	for i := 0; i+1 < len(seen); i += 2 {
		pairs = append(pairs, seen[i]+seen[i+1])
	}
	slices.Sort(pairs)
	slices.Sort(entries)
	if !slices.Equal(slices.Compact(pairs), entries) {
		p.Fatalf("a scan found %.300q", pairs)
	}
}

func (p *probe) rest() {
	p.guest.log = nil
	p.now = time.Unix(1_900_000_000, 123_000_000)
	p.same("1900000000123000000 random", "rest", "")
	if want := []string{"0 one", "3 two"}; !slices.Equal(p.guest.log, want) {
		p.Fatalf("the log is %q", p.guest.log)
	}
}

func (p *probe) failures(language string) {
	p.refused(p, 77, "fail", "", 77)
	p.refused(p, 241, "fail", "")
	var failed *extension.CallError
	if _, err := p.try("fail", "", 5); !errors.As(err, &failed) || !strings.Contains(failed.Message, "on purpose") {
		p.Fatalf("the error does not say why: %v", err)
	}
	if language != "c" { // C knows no panic.
		p.refused(p, 243, "panic", "")
	}
	if language == "c" || language == "as" {
		if _, err := p.try("code", "", 9); !errors.As(err, &failed) || failed.Kind != extension.Returned || failed.Code != 9 {
			p.Fatalf("a code that was returned: %v", err)
		}
	}
}

// memory calls so often that a function which kept the memory of its calls would
// have far more than the 16 MiB it may have.
func (p *probe) memory() {
	p.data = table{"large": large}
	for range 300 {
		p.same(framed(large), "get", "large", 0)
	}
}
