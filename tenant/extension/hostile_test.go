package extension_test

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/ostrodb/ostro/tenant/extension"
	"github.com/ostrodb/ostro/tenant/extension/local"
)

func readGuest(tb testing.TB, name string) []byte {
	tb.Helper()
	code, err := os.ReadFile("testdata/" + name + ".wasm")
	if err != nil {
		tb.Fatal(err)
	}
	return code
}

func TestHostileFunctionsGetAnErrorAndNothingElse(t *testing.T) {
	m := compile(t, "hostile")
	limits := extension.DefaultLimits()
	limits.Call.Fuel = 50_000_000
	limits.Call.HostCalls = 100_000
	limits.Call.Views = 1000
	p := poolOf(t, m, limits, extension.PoolOptions{})
	for fn, kind := range map[string]extension.Kind{
		"loop":          extension.OutOfFuel,
		"tightloop":     extension.OutOfFuel,
		"recursion":     extension.OutOfStack,
		"pingpong":      extension.OutOfStack,
		"growflood":     extension.OutOfFuel,
		"bigfill":       extension.OutOfFuel,
		"bigcopy":       extension.OutOfFuel,
		"giantresponse": extension.OverLimit,
		"hostflood":     extension.OverLimit,
		"writeflood":    extension.OverLimit,
		"bufferflood":   extension.OverLimit,
		"viewflood":     extension.OverLimit,
		"randomflood":   extension.OutOfFuel,
		"scanflood":     extension.OutOfFuel,
		"trap":          extension.Trapped,
		"wildread":      extension.Trapped,
		"wildpointer":   extension.Misused,
		"wildkey":       extension.Misused,
		"wildbuffer":    extension.Misused,
		"wildview":      extension.Misused,
		"overfill":      extension.Misused,
		"twice":         extension.Misused,
		"hugevalue":     extension.Returned,
		"manykeys":      extension.Misused,
	} {
		t.Run(fn, func(t *testing.T) {
			s := storeOf(t, "large="+strings.Repeat("x", 10_000))
			res, err := invoke(p, s, fn, "k")
			wantKind(t, err, kind)
			if res.Response != nil || s.Len() != 1 {
				t.Errorf("it left %d bytes of response and %d keys", len(res.Response), s.Len())
			}
			// Others are served as before.
			call(t, p, s, "logflood", "k")
		})
	}
}

func TestMemoryEndsAtItsLimit(t *testing.T) {
	limits := extension.DefaultLimits()
	limits.Module.MemoryPages = 64
	m, err := newRuntime(t, extension.Options{}).Compile(t.Context(), readGuest(t, "hostile"), limits)
	if err != nil {
		t.Fatal(err)
	}
	p := poolOf(t, m, limits, extension.PoolOptions{})
	got := call(t, p, local.New(nil), "hoard", "k")
	if want := u32(uint32(64 - m.About().MemoryPages)); got != want {
		t.Fatalf("it got %q more pages, want %q", got, want)
	}
}

func TestAFloodOfLinesIsCut(t *testing.T) {
	p := newPool(t, "hostile", extension.PoolOptions{})
	lines := 0
	res, err := p.Call(&extension.Invocation{Function: "logflood", Store: local.New(nil), Log: func(int, []byte) { lines++ }})
	if err != nil || lines != 65 || res.LogsLost != 1000-65 {
		t.Fatalf("%d lines came, %d were lost, %v", lines, res.LogsLost, err)
	}
}

// turns lets a test see and steer where a call gives way.
type turns func(extension.Reason) error

func (f turns) Yield(why extension.Reason) error { return f(why) }
func (turns) Aloud(f func())                     { f() }

// A collection stops all goroutines; a guest that never came back to Go would hold it up for ever. More of them loop than
// there are processors, each in another way.
func TestCollectionsComeToTheirEndWhileGuestsLoop(t *testing.T) {
	p := newPool(t, "hostile", extension.PoolOptions{})
	end := make(chan struct{})
	loops := []string{"loop", "tightloop", "bigfill", "bigcopy", "hostflood", "growflood"}
	var running sync.WaitGroup
	failed := make(chan error, 10*len(loops))
	n := 0
	for n <= runtime.GOMAXPROCS(0) || n < len(loops) {
		fn := loops[n%len(loops)]
		n++
		running.Add(1)
		go func() {
			var once sync.Once
			_, err := p.Call(&extension.Invocation{Function: fn, Store: local.New(nil), Fuel: 1 << 60, Turns: turns(func(extension.Reason) error {
				once.Do(running.Done)
				select {
				case <-end:
					return os.ErrDeadlineExceeded
				default:
					return nil
				}
			})})
			failed <- err
		}()
	}
	running.Wait()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&after)
	if after.NumGC < before.NumGC+3 {
		t.Errorf("%d collections of 3", after.NumGC-before.NumGC)
	}
	close(end)
	for range n {
		var e *extension.CallError
		if err := <-failed; !errors.As(err, &e) || e.Kind != extension.Killed && e.Kind != extension.OverLimit {
			t.Errorf("%v", err)
		}
	}
}

func TestALongCallWaitsForItsTurnWhileOthersRun(t *testing.T) {
	p := newPool(t, "work", extension.PoolOptions{})
	s := storeOf(t, "k=v")
	waiting, turn := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	var once sync.Once
	go func() {
		_, err := p.Call(&extension.Invocation{
			Function: "burn", Keys: [][]byte{{'k'}}, Args: [][]byte{[]byte(u32(1_000_000))}, Store: s,
			Turns: turns(func(why extension.Reason) error {
				once.Do(func() { close(waiting); <-turn })
				return nil
			}),
		})
		done <- err
	}()
	<-waiting
	for range 100 {
		call(t, p, s, "get", "k")
	}
	select {
	case err := <-done:
		t.Fatalf("the long call ended before its turn: %v", err)
	default:
	}
	close(turn)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestAShortCallNeverGivesWay(t *testing.T) {
	p := newPool(t, "work", extension.PoolOptions{})
	res, err := p.Call(&extension.Invocation{
		Function: "burn", Keys: [][]byte{{'k'}}, Args: [][]byte{[]byte(u32(100))}, Store: local.New(nil),
		Turns: turns(func(extension.Reason) error { t.Error("it gave way"); return nil }),
	})
	if err != nil || res.Slices != 0 || res.Fuel < 500 || res.Fuel > 5000 {
		t.Fatalf("%+v, %v", res, err)
	}
}

func TestMalformedModulesAreRefused(t *testing.T) {
	r := newRuntime(t, extension.Options{})
	whole := readGuest(t, "work")
	for name, code := range map[string][]byte{
		"empty":     {},
		"text":      []byte("#!/bin/sh\necho hello"),
		"component": {0, 'a', 's', 'm', 0x0d, 0, 1, 0},
		"header":    whole[:8],
		"half":      whole[:len(whole)/2],
		"longer":    append(bytes.Clone(whole), 0x0a),
		"vector":    append(bytes.Clone(whole[:8]), 1, 5, 0xff, 0xff, 0xff, 0xff, 0x0f),
	} {
		if _, err := r.Compile(t.Context(), code, extension.DefaultLimits()); err == nil || !strings.HasPrefix(err.Error(), "the module is refused: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEveryCutOfAModuleIsRefused(t *testing.T) {
	whole := readGuest(t, "work")
	for cut := range whole {
		// Custom sections stand at the end: cut between two of them, the module is whole.
		about, err := extension.Describe(whole[:cut], extension.DefaultLimits())
		if err == nil && len(about.Functions) == 0 {
			t.Fatalf("cut at %d: accepted without functions", cut)
		}
	}
}

// loudly is a turn that notes whether it is loud.
type loudly struct{ loud, times int }

func (*loudly) Yield(extension.Reason) error { return nil }

func (l *loudly) Aloud(f func()) {
	l.loud++
	l.times++
	f()
	l.loud--
}

// A long call runs on a thread that may lose its core at any moment: with a lock of those who serve they would wait for it.
func TestWhatALongCallSharesWithOthersItDoesAloud(t *testing.T) {
	p := newPool(t, "work", extension.PoolOptions{})
	turn, lines := &loudly{}, 0
	_, err := p.Call(&extension.Invocation{Function: "clock", Store: local.New(nil), Turns: turn, Log: func(int, []byte) {
		if lines++; turn.loud == 0 {
			t.Error("a line is logged quietly")
		}
	}})
	if err != nil || lines == 0 {
		t.Fatalf("%d lines, %v", lines, err)
	}
	if turn.times != lines+1 {
		t.Errorf("it was loud %d times; it logs %d lines and gives its instance back", turn.times, lines)
	}
}
