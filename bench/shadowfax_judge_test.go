package bench

import (
	"strings"
	"testing"
	"time"
)

// owning is rounds of each way to check with so many ranges; views have these rates.
func owning(ranges int, views ...float64) []ownershipCell {
	round := func(all ...float64) (rounds []respRound) {
		for _, r := range all {
			rounds = append(rounds, respRound{OpsPerSecond: r})
		}
		return rounds
	}
	return []ownershipCell{{ranges, "views", round(views...)}, {ranges, "keys", round(1)}, {ranges, "redis", round(1)}}
}

func TestEachLineOfTheShadowfaxClaimIsJudgedByItsFigure(t *testing.T) {
	moved := func(name string, took, carried time.Duration) scaleout {
		return scaleout{Case: name, Took: took, Carried: carried}
	}
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		o    shadowOutcome
		want string // one by one
	}{
		"nothing was measured": {shadowOutcome{}, ""},
		"views are flat":       {shadowOutcome{Ownership: append(owning(1, 100, 100), owning(2048, 96, 97)...)}, "yes"},
		"views lose something": {shadowOutcome{Ownership: append(owning(1, 100, 100), owning(2048, 94, 93)...)}, "NO"},
		"what rounds scatter by is no loss": {
			shadowOutcome{Ownership: append(owning(1, 80, 100, 120), owning(2048, 75, 90, 110)...)}, "yes",
		},
		"most ranges are compared with fewest, not with what lies between": {
			shadowOutcome{Ownership: append(append(owning(1, 100), owning(64, 50)...), owning(2048, 100)...)}, "yes",
		},
		"one number of ranges is no comparison": {shadowOutcome{Ownership: owning(1, 100)}, ""},
		"indirection is five times as soon": {
			shadowOutcome{Scaleout: []scaleout{moved("budget, indirect", 100*ms, ms), moved("budget, scan", 500*ms, ms)}}, "yes yes",
		},
		"indirection is hardly sooner": {
			shadowOutcome{Scaleout: []scaleout{moved("budget, indirect", 100*ms, ms), moved("budget, scan", 499*ms, ms)}}, "NO yes",
		},
		"what was not timed is not sooner": {
			shadowOutcome{Scaleout: []scaleout{moved("budget, indirect", 0, ms), moved("budget, scan", 499*ms, ms)}}, "NO yes",
		},
		"a target never carries its share": {
			shadowOutcome{Scaleout: []scaleout{moved("in memory", 100*ms, ms), moved("budget, scan", 500*ms, 0)}}, "NO",
		},
		"cold records follow":     {shadowOutcome{Compaction: []scaleout{{Cold: 5, Released: ms}}}, "yes"},
		"they follow for ever":    {shadowOutcome{Compaction: []scaleout{{Cold: 5}}}, "NO"},
		"they follow in one case": {shadowOutcome{Compaction: []scaleout{{Cold: 5, Released: ms}, {Cold: 5}}}, "yes NO"},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.judge()
			var got []string
			for _, v := range c.o.Verdicts {
				got = append(got, v.Holds)
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%+v, want %s", c.o.Verdicts, c.want)
			}
		})
	}
}

func TestAShareIsCarriedWhenTwoLooksSaySo(t *testing.T) {
	at := func(seconds, target float64) shadowPoint {
		return shadowPoint{At: seconds, Source: 100 - target, Target: target}
	}
	for name, c := range map[string]struct {
		series []shadowPoint
		want   time.Duration
	}{
		"never":                     {[]shadowPoint{at(0.1, 0), at(0.2, 5), at(0.3, 8.9)}, 0},
		"at once":                   {[]shadowPoint{at(0.1, 10), at(0.2, 10)}, 100 * time.Millisecond},
		"nine tenths are enough":    {[]shadowPoint{at(0.1, 0), at(0.2, 9.1), at(0.3, 9.1)}, 100 * time.Millisecond},
		"for one look only":         {[]shadowPoint{at(0.1, 10), at(0.2, 0), at(0.3, 10), at(0.4, 10)}, 200 * time.Millisecond},
		"since before the wish":     {[]shadowPoint{at(-0.05, 10), at(0.05, 10), at(0.15, 10)}, 50 * time.Millisecond},
		"before it was asked for":   {[]shadowPoint{at(-0.2, 10), at(-0.1, 10), at(0.1, 0)}, 0},
		"the last look has no peer": {[]shadowPoint{at(0.1, 0), at(0.2, 10)}, 0},
		"nobody does anything":      {[]shadowPoint{{At: 0.1}, {At: 0.2}}, 0},
	} {
		if got := carried(c.series, 0.1); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestTheReportTellsWhetherResultsOfWritesWereKept(t *testing.T) {
	for want, recorded := range map[string]bool{"clients are as by default": true, "--unrecorded": false} {
		o := shadowOutcome{Scaleout: []scaleout{{Case: "in memory", Recorded: recorded}}}
		if notes := strings.Join(o.notes(), "\n"); !strings.Contains(notes, want) {
			t.Errorf("recorded %t: %q is not among the notes:\n%s", recorded, want, notes)
		}
	}
}
