package extension

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var scripts = flag.Int("scripts", 0, "run so many random scripts instead of a few thousand")

func TestRandomScriptsOfHostCallsDoWhatTheReferenceDoes(t *testing.T) {
	n := 4000
	if testing.Short() {
		n = 1000
	}
	if *scripts > 0 {
		n = *scripts
	}
	seed := *fromSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-seed %d", seed)
	all := playAll(t, seed, uint64(n))
	fmt.Printf("-seed %d: %d scripts, %d calls of functions, %d of the host, %d yields\n", seed, all.scripts, all.calls, all.hostCalls, all.yields)
	t.Logf("\n%s", all.seen.table())
}

// Whatever a call of the host can answer, one of these scripts gets as an answer.
func TestScriptsGetEveryAnswerOfEveryHostCall(t *testing.T) {
	s := newStage(t)
	s.thorough = true
	for _, seed := range seeds() {
		s.play(t, seed.how, seed.script)
	}
	for i, step := range steps {
		for _, note := range answers(step.name) {
			if s.seen[i][note] == 0 {
				t.Errorf("%s has not answered: %s", step.name, note)
			}
		}
	}
	t.Logf("%d scripts\n%s", s.scripts, s.seen.table())
}

// Before a call runs there is nobody who could be told of a limit.
func TestAFirstKeyThatIsTooLongToBeRememberedIsNotPut(t *testing.T) {
	s := newStage(t)
	p := s.pools[metered]
	p.limits.WriteBytes = len(scriptKeys[0]) - 1
	p.module.habits.foresee(true)
	store := &model{t: t}
	res, err := p.Call(&Invocation{Function: "script", Keys: scriptKeys, Args: [][]byte{script{}.do("store", areaAt+36, 1)}, Store: store, Prompt: store})
	if err != nil || res.Reads != 0 {
		t.Errorf("%d reads, %v", res.Reads, err)
	}
}

// What was read for nobody is forgotten with the call, and takes nothing of what the next one may read.
func TestAFirstValueThatNobodyLookedAtLeavesNothingBehind(t *testing.T) {
	s := newStage(t)
	s.play(t, expected, script{}.do("yield", 0))
	if left := s.leases[metered].task.names; len(left) > 0 {
		t.Errorf("the call has left %q", left)
	}
}

// FuzzHostScripts has the fuzzer look for scripts.
func FuzzHostScripts(f *testing.F) {
	for _, s := range seeds() {
		f.Add(uint16(s.how), []byte(s.script))
	}
	own := newStage(f)
	own.thorough = true
	f.Fuzz(func(t *testing.T, h uint16, code []byte) { own.play(t, how(h), code) })
}

// thoroughEvery is how many random scripts there are for one after which all memory is looked at.
const thoroughEvery = 8

// playAll runs random scripts, on all processors, and counts.
func playAll(t *testing.T, seed, n uint64) *stage {
	stages := make([]*stage, runtime.GOMAXPROCS(0))
	var players sync.WaitGroup
	for i := range stages {
		own := newStage(t)
		stages[i] = own
		players.Go(func() {
			told := time.Now()
			for k := uint64(i); k < n && !t.Failed(); k += uint64(len(stages)) {
				own.playOne(t, seed+k)
				if i == 0 && time.Since(told) > time.Minute {
					told = time.Now()
					fmt.Printf("-seed %d: about %d of %d scripts\n", seed, k, n)
				}
			}
		})
	}
	players.Wait()
	all := &stage{}
	for _, own := range stages {
		all.add(own)
	}
	return all
}

// playOne runs the script that a seed makes.
func (s *stage) playOne(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 6))
	h := randomHow(r)
	s.thorough = seed%thoroughEvery == 0 || *scripts == 1
	s.play(t, h, randomScript(r, h))
	if t.Failed() {
		t.Logf("repeat it with -args -seed %d -scripts 1", seed)
	}
}

// randomHow has nothing special as often as not.
func randomHow(r *rand.Rand) how {
	h := how(r.Uint32())
	if r.IntN(2) == 0 {
		h &^= sliceBits - 1
	}
	return h
}

func (s *stage) add(o *stage) {
	s.scripts, s.calls, s.hostCalls, s.yields = s.scripts+o.scripts, s.calls+o.calls, s.hostCalls+o.hostCalls, s.yields+o.yields
	s.seen.addAll(&o.seen)
}

// table tells how the steps went.
func (s *seen) table() string {
	var b strings.Builder
	for i, step := range steps {
		fmt.Fprintf(&b, "%-24s", step.name)
		for _, note := range slices.Sorted(maps.Keys(s[i])) {
			fmt.Fprintf(&b, " %s %d;", note, s[i][note])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (s *seen) addAll(o *seen) {
	for i, notes := range o {
		for note, n := range notes {
			s.add(i, note)
			s[i][note] += n - 1
		}
	}
}
