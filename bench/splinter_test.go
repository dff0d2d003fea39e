package bench

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/bench/guest"
)

// small is an experiment that is over soon.
func small(parts string, more ...string) []string {
	return append([]string{
		"splinter", "--parts", parts, "--redis-program", "", "--tenants", "1,3", "--records", "600", "--rounds", "1", "--duration", "10ms",
		"--window", "2", "--batch", "4", "--batches", "1,4", "--loads", "50",
	}, more...)
}

// ways lists what was measured, as part: case, way.
func (o *splinterOutcome) ways() (all []string) {
	for _, c := range o.Cells {
		all = append(all, c.Part+": "+c.Case+", "+c.Way)
	}
	return all
}

func TestSplinterMeasuresPlainOperationsBesideFunctions(t *testing.T) {
	got := decoded[splinterOutcome](t, small("get,tenants")...)
	if len(got.Cells) != 2*3+2+2*2 {
		t.Fatalf("measured %q", got.ways())
	}
	for _, c := range got.Cells {
		if len(c.Rounds) != 1 || c.Rounds[0].OpsPerSecond <= 0 || c.Rounds[0].Latency.P50 <= 0 || c.Rounds[0].ServerCPU <= 0 {
			t.Errorf("%s, %s, %s: %+v", c.Part, c.Case, c.Way, c.Rounds)
		}
	}
	if lines := got.judge(); len(lines) != 2 || !strings.Contains(lines[0].Ours, "%") || !strings.Contains(lines[1].Line, "once") {
		t.Errorf("judged %+v", lines)
	}
}

func TestSplinterSumsUpAndWalksGraphsInEveryWay(t *testing.T) {
	got := decoded[splinterOutcome](t, small("aggregate,compute,tao", "--sizes", "4,40", "--orders", "3,30000", "--objects", "20")...)
	want := []string{
		"aggregate: 4 records, client", "aggregate: 4 records, fcall", "aggregate alone: 40 records, function",
		"compute: 30,000 multiplications, function", "tao: 60% objects, 40% ranges, combined",
	}
	for _, w := range want {
		if !slices.Contains(got.ways(), w) {
			t.Errorf("%q is missing in %q", w, got.ways())
		}
	}
	if lines := got.judge(); len(lines) != 3+3 {
		t.Errorf("judged %+v", lines)
	}
}

func TestSplinterSharesAServerWithWhoeverNeverEnds(t *testing.T) {
	got := decoded[splinterOutcome](t, small("long,hostile", "--hostile", "1000000,8", "--yields", "0,8", "--ostro-args", "--function-deadline 100ms")...)
	for _, c := range got.Cells {
		for _, r := range c.Rounds {
			if bad := r.Bad > 0; bad != (c.Way == loopsName) {
				t.Errorf("%s, %s, %s: %d loops", c.Part, c.Case, c.Way, r.Bad)
			}
		}
	}
	if lines := got.judge(); len(lines) != 3 {
		t.Errorf("judged %+v", lines)
	}
}

func TestSplinterHasHostileTenantsDoAllThatTheyCan(t *testing.T) {
	kinds := splinterKinds[:len(splinterKinds)-1] // All but what takes long to compile: it would, here, too.
	got := decoded[splinterOutcome](t, small("kinds", "--kinds", strings.Join(kinds, ","), "--kinds-every", "8", "--ostro-args", "--function-deadline 100ms")...)
	for _, c := range got.Cells {
		if r := c.Rounds[0]; (r.Bad > 0) != (c.Way == c.Case) {
			t.Errorf("%s, %s, %s: %d bad deeds", c.Part, c.Case, c.Way, r.Bad)
		}
		if installs := c.Case == "malformed"; installs != (c.Rounds[0].Install > 0) {
			t.Errorf("%s, %s, %s: others' installations took %v", c.Part, c.Case, c.Way, c.Rounds[0].Install)
		}
	}
	if lines := got.judge(); len(got.Cells) != 4*len(kinds) || len(lines) != 2*len(kinds) {
		t.Errorf("measured %q, judged %+v", got.ways(), lines)
	}
}

func TestSplinterInstallsAndFindsFunctionsAgain(t *testing.T) {
	got := decoded[splinterOutcome](t, small("install", "--functions", "8", "--first-calls", "4")...)
	i := got.Install
	if i == nil || i.Functions != 8 || i.Tenants != 3 || i.Calls != 4 || i.First.P50 <= 0 || i.Again.P50 <= 0 || i.Called <= 0 {
		t.Fatalf("got %+v", i)
	}
	if lines := got.judge(); len(lines) != 3 {
		t.Errorf("judged %+v", lines)
	}
}

func TestSplinterWritesATableAndAPlot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out.svg")
	out := mustRun(t, small("skew,tenants", "--skews", "0.9", "--plot", file)...)
	for _, want := range []string{"at home only", "3 tenants", "What must hold", "the paper", "repeat   ostro"} {
		if !strings.Contains(out, want) {
			t.Errorf("the report lacks %q:\n%s", want, out)
		}
	}
	if svg, err := os.ReadFile(file); err != nil || !bytes.Contains(svg, []byte("native")) {
		t.Errorf("the plot: %v\n%s", err, svg)
	}
}

func TestSplinterHasRedisDoTheSame(t *testing.T) {
	redis, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatal("this test has Redis do the same: install the package redis-server")
	}
	got := decoded[splinterOutcome](t, small("get,aggregate,tao", "--sizes", "4", "--objects", "20", "--redis-program", redis)...)
	if !strings.HasPrefix(got.Redis, "redis ") {
		t.Errorf("beside was %q", got.Redis)
	}
	for _, w := range []string{"get: batches of 4, redis lua", "aggregate: 4 records, redis lua", "tao: 60% objects, 40% ranges, redis, GET and lua"} {
		if !slices.Contains(got.ways(), w) {
			t.Errorf("%q is missing in %q", w, got.ways())
		}
	}
}

func TestNumberedGuestsAreAllDifferent(t *testing.T) {
	a, b := guest.Numbered(7), guest.Numbered(12345)
	if bytes.Equal(a, b) || !bytes.Contains(b, []byte("ostro_fn_f12345")) || len(a) != len(b) {
		t.Errorf("modules of %d and %d bytes", len(a), len(b))
	}
}

func TestLoopsAreJudgedByWhatRoundsWithoutAnyDifferBy(t *testing.T) {
	cell := func(x float64, way string, rates ...float64) splinterCell {
		c := splinterCell{Part: "hostile", X: x, Way: way}
		for _, r := range rates {
			c.Rounds = append(c.Rounds, splinterRound{OpsPerSecond: r})
		}
		return c
	}
	o := splinterOutcome{Cells: []splinterCell{
		cell(0, noneName, 100, 200, 300), cell(0, againName, 103, 196, 315), // 3%, 2%, 5% apart
		cell(1e6, noneName, 100, 200, 300), cell(1e6, loopsName, 97.5, 200, 280),
	}}
	lines := o.judgeHostile()
	if len(lines) == 0 || lines[0].Holds != "yes" || !strings.Contains(lines[0].Wanted, "within 3.0%") || !strings.Contains(lines[0].Ours, "0.97x") {
		t.Errorf("judged %+v", lines)
	}
	o.Cells[3] = cell(1e6, loopsName, 96, 192, 320)
	if lines := o.judgeHostile(); len(lines) == 0 || lines[0].Holds != "NO" {
		t.Errorf("judged %+v", lines)
	}
}
