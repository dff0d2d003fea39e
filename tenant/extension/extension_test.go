package extension_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ostrodb/ostro/tenant/extension"
	"github.com/ostrodb/ostro/tenant/extension/local"
)

func TestAFunctionGetsItsKeysAndArguments(t *testing.T) {
	p := newPool(t, "work", extension.PoolOptions{})
	got := call(t, p, local.New(nil), "echo", "key", "", "an argument")
	want := u32(1) + u32(2) + u32(3) + u32(0) + u32(11) + "keyan argument"
	if got != want {
		t.Fatalf("%q, want %q", got, want)
	}
}

func TestArgumentsBeyondTheBufferAreToldByTheirLength(t *testing.T) {
	p := newPool(t, "work", extension.PoolOptions{})
	res, err := invoke(p, local.New(nil), "echo", strings.Repeat("k", 10_000))
	// The guest responds with as many bytes as it was told there are: more than its buffer has.
	if err != nil || len(res.Response) != 12+10_000 {
		t.Fatalf("%d bytes, %v", len(res.Response), err)
	}
}

func TestAValueIsReadWholeWhateverItsLength(t *testing.T) {
	p := newPool(t, "work", extension.PoolOptions{})
	for _, n := range []int{0, 1, 8191, 8192, 8193, 100_000} {
		value := strings.Repeat("x", n)
		if got := call(t, p, storeOf(t, "k="+value), "get", "k"); got != value {
			t.Errorf("%d bytes came of %d", len(got), n)
		}
	}
	if got := call(t, p, local.New(nil), "get", "k"); got != "(absent)" {
		t.Errorf("%q for a key that is not there", got)
	}
}

func TestAnAggregateFollowsItsList(t *testing.T) {
	p := newPool(t, "work", extension.PoolOptions{})
	s := storeOf(t, "list=key00001key00002", "key00001="+u64(40), "key00002="+u64(2))
	if got := call(t, p, s, "aggregate", "list"); got != u64(42) {
		t.Fatalf("%q", got)
	}
}

func TestAFunctionSeesItsOwnWritesAndOthersSeeThemAtItsEnd(t *testing.T) {
	p := newPool(t, "work", extension.PoolOptions{})
	s := local.New(nil)
	for i := range uint64(3) {
		if got := call(t, p, s, "incr", "n"); got != u64(i+1) {
			t.Fatalf("%q after %d calls", got, i+1)
		}
	}
	if got := valueOf(s, "n"); got != u64(3) {
		t.Fatalf("the store has %q", got)
	}
}

func TestWritesAreAppliedTogetherOrNotAtAll(t *testing.T) {
	p := newPool(t, "work", extension.PoolOptions{})
	for how, kind := range map[string]extension.Kind{"trap": extension.Trapped, "fail": extension.Failed, "return": extension.Returned, "loop": extension.OutOfFuel} {
		s := storeOf(t, "a=old", "c=old")
		_, err := p.Call(&extension.Invocation{Function: "transfer", Keys: [][]byte{{'a'}}, Args: [][]byte{[]byte(how)}, Store: s, Fuel: 1_000_000})
		wantKind(t, err, kind)
		if a, b, c := valueOf(s, "a"), valueOf(s, "b"), valueOf(s, "c"); a != "old" || b != "(absent)" || c != "old" {
			t.Errorf("after %s the store has a=%s b=%s c=%s", how, a, b, c)
		}
	}
	s := storeOf(t, "a=old", "c=old")
	call(t, p, s, "transfer", "a", "keep")
	if a, b, c := valueOf(s, "a"), valueOf(s, "b"), valueOf(s, "c"); a != "1" || b != "2" || c != "(absent)" {
		t.Errorf("the store has a=%s b=%s c=%s", a, b, c)
	}
}

func TestErrorsTellWhatTheFunctionSaid(t *testing.T) {
	p := newPool(t, "work", extension.PoolOptions{})
	_, err := invoke(p, local.New(nil), "transfer", "a", "fail")
	if e := wantKind(t, err, extension.Failed); e.Code != 42 || e.Error() != "function transfer failed: no money" {
		t.Errorf("%d %q", e.Code, e.Error())
	}
	_, err = invoke(p, local.New(nil), "transfer", "a", "return")
	if e := wantKind(t, err, extension.Returned); e.Code != 7 {
		t.Errorf("code %d", e.Code)
	}
	_, err = invoke(p, local.New(nil), "transfer", "a", "trap")
	if e := wantKind(t, err, extension.Trapped); !strings.Contains(e.Error(), "unreachable") || !strings.Contains(e.Trace, "fn_transfer") {
		t.Errorf("%q with trace %q", e.Error(), e.Trace)
	}
	_, err = invoke(p, local.New(nil), "nosuch", "a")
	if err == nil || !strings.Contains(err.Error(), "aggregate") {
		t.Errorf("%v does not tell which functions there are", err)
	}
}

// raced changes a key between a function's read and its commit.
type raced struct {
	*local.Store
	change func()
}

func (r raced) Commit(c *extension.Changes) error {
	r.change()
	return r.Store.Commit(c)
}

func TestAConflictAppliesNothing(t *testing.T) {
	p := newPool(t, "work", extension.PoolOptions{})
	s := storeOf(t, "n="+u64(7))
	_, err := invoke(p, raced{s, func() { call(t, p, s, "incr", "n") }}, "incr", "n")
	if e := wantKind(t, err, extension.NotCommitted); !errors.Is(e, local.ErrConflict) {
		t.Errorf("%v", e)
	}
	if got := valueOf(s, "n"); got != u64(8) {
		t.Errorf("the store has %q", got)
	}
}

func TestACallForReadingOnlyWritesNothing(t *testing.T) {
	p := newPool(t, "work", extension.PoolOptions{})
	_, err := p.Call(&extension.Invocation{Function: "incr", Keys: [][]byte{{'n'}}, Store: local.New(nil), ReadOnly: true})
	if e := wantKind(t, err, extension.Returned); e.Code != -int32(extension.ReadOnly) {
		t.Fatalf("code %d", e.Code)
	}
}

func TestManyKeysAreReadAtOnce(t *testing.T) {
	p := newPool(t, "work", extension.PoolOptions{})
	s := storeOf(t, "a=1", "b=two", "long="+strings.Repeat("z", 100))
	if got := call(t, p, s, "multiget", "a", "none", "long", "b"); got != "1,-,~zzzzzzzz,two," {
		t.Fatalf("%q", got)
	}
}

func TestAScanGivesAllKeysWithThePrefix(t *testing.T) {
	p := newPool(t, "work", extension.PoolOptions{})
	lines := []string{"other=1", "large=" + strings.Repeat("x", 100)}
	var want []string
	for i := range 2000 {
		key := "k" + strings.Repeat("i", i%7) + string(rune('a'+i%26)) + u32(uint32(i))
		lines = append(lines, key+"=v")
		want = append(want, key+"=v")
	}
	got := strings.Split(strings.TrimSuffix(call(t, p, storeOf(t, lines...), "scan", "k"), ";"), ";")
	slices.Sort(got)
	slices.Sort(want)
	// A key may have a semicolon in it: compare what was joined.
	if strings.Join(got, ";") != strings.Join(splitAll(want), ";") {
		t.Fatalf("%d entries came, want %d", len(got), len(want))
	}
	if got := call(t, p, storeOf(t, "large="+strings.Repeat("x", 100), "l=1"), "scan", "l"); got != "l=1;" {
		t.Fatalf("%q beside an entry that does not fit", got)
	}
}

func splitAll(entries []string) []string {
	all := strings.Split(strings.Join(entries, ";"), ";")
	slices.Sort(all)
	return all
}

func TestMemoryStaysBetweenCallsUnlessItIsToBeFresh(t *testing.T) {
	m := compile(t, "work")
	kept := poolOf(t, m, extension.DefaultLimits(), extension.PoolOptions{})
	fresh := poolOf(t, m, extension.DefaultLimits(), extension.PoolOptions{Fresh: true})
	s := local.New(nil)
	for i := range uint32(3) {
		if got := call(t, kept, s, "state", "k"); got != u32(i+1) {
			t.Errorf("call %d of a kept instance: %q", i, got)
		}
		if got := call(t, fresh, s, "state", "k"); got != u32(1) {
			t.Errorf("call %d of a fresh instance: %q", i, got)
		}
	}
	if got := fresh.Metrics(); got.Made != 1 || got.Reused != 2 {
		t.Errorf("fresh calls made %d instances and used %d again", got.Made, got.Reused)
	}
}

func TestATrapLeavesNoStateBehind(t *testing.T) {
	p := newPool(t, "work", extension.PoolOptions{})
	s := local.New(nil)
	call(t, p, s, "state", "k")
	if _, err := invoke(p, s, "transfer", "k", "trap"); err == nil {
		t.Fatal("no trap")
	}
	if got := call(t, p, s, "state", "k"); got != u32(1) {
		t.Fatalf("%q after a trap", got)
	}
}

func TestTheClockNeverGoesBackAndRandomBytesCanBeRepeated(t *testing.T) {
	at := time.Unix(1000, 123_456_789)
	opts := extension.PoolOptions{Clock: &extension.Clock{Source: func() time.Time { return at }}, Seed: &[32]byte{1}}
	m := compile(t, "work")
	p := poolOf(t, m, extension.DefaultLimits(), opts)
	first := call(t, p, local.New(nil), "clock", "k")
	if first[:8] != u64(uint64(time.Unix(1000, 123_000_000).UnixNano())) {
		t.Errorf("time %q", first[:8])
	}
	at = at.Add(-time.Hour)
	if second := call(t, p, local.New(nil), "clock", "k"); second[:8] != first[:8] || second[8:] == first[8:] {
		t.Errorf("%q, then %q", first, second)
	}
	if again := call(t, poolOf(t, m, extension.DefaultLimits(), opts), local.New(nil), "clock", "k"); again[8:] != first[8:] {
		t.Errorf("%q, and with the same seed %q", first[8:], again[8:])
	}
}

func TestLinesOfTheLogAreDelivered(t *testing.T) {
	p := newPool(t, "work", extension.PoolOptions{})
	var got []string
	_, err := p.Call(&extension.Invocation{Function: "clock", Store: local.New(nil), Log: func(level int, line []byte) {
		got = append(got, string(rune('0'+level))+string(line))
	}})
	if err != nil || !slices.Equal(got, []string{"1hello"}) {
		t.Fatalf("%q, %v", got, err)
	}
}

func TestCallsAtTheSameTimeHaveInstancesOfTheirOwn(t *testing.T) {
	p := newPool(t, "work", extension.PoolOptions{})
	s := local.New(nil)
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			for done := 0; done < 100; {
				_, err := invoke(p, s, "incr", "n")
				switch {
				case err == nil:
					done++
				case !errors.Is(err, local.ErrConflict):
					t.Error(err)
					return
				}
			}
		})
	}
	calls.Wait()
	if got := valueOf(s, "n"); got != u64(800) {
		t.Fatalf("%q after 800 calls", got)
	}
}

func TestAResponseIsAppendedToWhatTheCallerHas(t *testing.T) {
	p := newPool(t, "work", extension.PoolOptions{})
	res, err := p.Call(&extension.Invocation{Function: "get", Keys: [][]byte{[]byte("k")}, Store: storeOf(t, "k=v"), Into: []byte("head:")})
	if err != nil || !bytes.Equal(res.Response, []byte("head:v")) {
		t.Fatalf("%q, %v", res.Response, err)
	}
}

func TestAClosedPoolTakesNoCalls(t *testing.T) {
	p := newPool(t, "work", extension.PoolOptions{})
	call(t, p, local.New(nil), "empty", "k")
	p.Close()
	if _, err := invoke(p, local.New(nil), "empty", "k"); !errors.Is(err, extension.ErrClosed) {
		t.Fatalf("%v", err)
	}
	if m := p.Metrics(); m.Instances != 0 {
		t.Fatalf("%d instances are left", m.Instances)
	}
}

// damageAll changes a byte in the middle of every file.
func damageAll(t *testing.T, dir string) {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil || len(all) == 0 {
		t.Fatalf("%d files, %v", len(all), err)
	}
	for _, e := range all {
		path := filepath.Join(dir, e.Name())
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)/2] ^= 1
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheCacheOfCompiledModulesServesTheNextRuntime(t *testing.T) {
	dir := t.TempDir()
	code := readGuest(t, "work")
	for i := range 4 {
		if i == 2 {
			damageAll(t, filepath.Join(dir, "rewritten"))
		}
		m, err := newRuntime(t, extension.Options{CacheDir: dir}).Compile(t.Context(), code, extension.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		if got := call(t, poolOf(t, m, extension.DefaultLimits(), extension.PoolOptions{}), storeOf(t, "k=v"), "get", "k"); got != "v" {
			t.Fatalf("%q", got)
		}
	}
}

func TestCompiledCodeThatIsDamagedIsCompiledAgain(t *testing.T) {
	dir, code := t.TempDir(), readGuest(t, "work")
	for name, damage := range map[string]func(b []byte) []byte{
		"a bit":   func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		"its end": func(b []byte) []byte { return b[:len(b)/2] },
		"all":     func([]byte) []byte { return nil },
	} {
		for range 2 {
			m, err := newRuntime(t, extension.Options{CacheDir: dir}).Compile(t.Context(), code, extension.DefaultLimits())
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got := call(t, poolOf(t, m, extension.DefaultLimits(), extension.PoolOptions{}), storeOf(t, "k=v"), "get", "k"); got != "v" {
				t.Fatalf("%s: %q", name, got)
			}
			files, err := filepath.Glob(filepath.Join(dir, "wazero-*", "*"))
			if err != nil || len(files) == 0 {
				t.Fatalf("nothing is kept: %v", err)
			}
			for _, path := range files {
				b, err := os.ReadFile(path)
				if err == nil {
					err = os.WriteFile(path, damage(b), 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
