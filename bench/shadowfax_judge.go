package bench

import (
	"fmt"
	"slices"
)

// wantedOfScan is how much sooner a move by indirection is to be over than one by a scan.
const wantedOfScan = 5.0

// noLoss is what a round loses or gains by chance, if the rounds themselves do not say more.
const noLoss = 0.05

// judge says of each line of the claim whether it held, as far as it was measured.
func (o *shadowOutcome) judge() {
	if v, ok := o.viewsLoseNothing(); ok {
		o.Verdicts = append(o.Verdicts, v)
	}
	if v, ok := o.soonerThanScan(); ok {
		o.Verdicts = append(o.Verdicts, v)
	}
	if len(o.Scaleout) > 0 {
		missed := slices.DeleteFunc(slices.Clone(o.Scaleout), func(s scaleout) bool { return s.Carried > 0 })
		o.Verdicts = append(o.Verdicts, verdict{
			Line: "the target comes to carry its share", Wanted: "in every case", Ours: fmt.Sprintf("%d of %d", len(o.Scaleout)-len(missed), len(o.Scaleout)), Holds: holds(len(missed) == 0),
		})
	}
	for _, s := range o.Compaction {
		o.Verdicts = append(o.Verdicts, verdict{
			Line: "cold records follow until no log depends on another", Wanted: "they do",
			Ours: fmt.Sprintf("%s within %s", grouped(s.Cold), short(s.Released)), Holds: holds(s.Released > 0),
		})
	}
}

// viewsLoseNothing compares the most ranges with the fewest, by views.
func (o *shadowOutcome) viewsLoseNothing() (v verdict, ok bool) {
	if len(o.Ownership) < 2*ownershipColumns {
		return v, false
	}
	few, many := o.Ownership[0], o.Ownership[len(o.Ownership)-ownershipColumns]
	got, chance := ratio(many.Rounds, few.Rounds, roundRate), max(noLoss, spread(figures(few.Rounds, roundRate))/2)
	return verdict{
		Line:   fmt.Sprintf("views lose nothing from %d to %s ranges", few.Ranges, grouped(int64(many.Ranges))),
		Wanted: fmt.Sprintf(">= %s (rounds scatter)", times(1-chance)), Paper: "flat",
		Ours:  fmt.Sprintf("%s of the operations, %s against %s each", times(got), micro(medianOf(many.Rounds, roundCPU)), micro(medianOf(few.Rounds, roundCPU))),
		Holds: holds(got >= 1-chance),
	}, true
}

// soonerThanScan compares two ways to move cold records.
func (o *shadowOutcome) soonerThanScan() (v verdict, ok bool) {
	find := func(name string) int {
		return slices.IndexFunc(o.Scaleout, func(s scaleout) bool { return s.Case == name })
	}
	indirect, scan := find("budget, indirect"), find("budget, scan")
	if indirect < 0 || scan < 0 {
		return v, false
	}
	a, b := o.Scaleout[indirect].Took, o.Scaleout[scan].Took
	sooner := b.Seconds() / a.Seconds()
	return verdict{
		Line: "cold data is served sooner by indirection than by a scan", Wanted: ">= 5x", Paper: "5.6x",
		Ours: fmt.Sprintf("%s: %s against %s", times(sooner), short(a), short(b)), Holds: holds(reaches(sooner, wantedOfScan)),
	}, true
}
