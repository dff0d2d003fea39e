package bench

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// judge says of each claim whether this run bears it out; of what was not measured it says nothing.
func (o *splinterOutcome) judge() (lines []verdict) {
	lines = append(lines, o.judgeGet()...)
	lines = append(lines, o.judgeAggregate()...)
	lines = append(lines, o.judgeTAO()...)
	lines = append(lines, o.judgeHostile()...)
	lines = append(lines, o.judgeKinds()...)
	return append(lines, o.judgeInstall()...)
}

func (o *splinterOutcome) judgeGet() []verdict {
	native, function := o.cell("get", float64(o.Batch), "native"), o.cell("get", float64(o.Batch), "function")
	if native == nil || function == nil {
		native, function = o.cell("tenants", float64(o.Tenants), "native"), o.cell("tenants", float64(o.Tenants), "function")
	}
	if native == nil || function == nil {
		return nil
	}
	loss := 1 - function.ratioTo(native, splinterRate)
	lines := []verdict{{
		fmt.Sprintf("a get by a function at %s, batches of %d: throughput lost", many(o.Tenants, "tenant", "tenants"), o.Batch),
		"at most 25%", "19%", fmt.Sprintf("%.0f%%", 100*loss), holds(loss <= 0.25),
	}}
	if once := o.cell("get", float64(o.Batch), recordedName); once != nil {
		lines = append(lines, verdict{
			"the same, each call recorded by the server to take effect once", "-", "-",
			fmt.Sprintf("%.0f%%", 100*(1-once.ratioTo(native, splinterRate))), "a plain get is not recorded",
		})
	}
	return lines
}

func (o *splinterOutcome) judgeAggregate() (lines []verdict) {
	const four = 4
	client, function := o.cell("aggregate", four, "client"), o.cell("aggregate", four, "function")
	if client == nil || function == nil {
		return nil
	}
	gain := function.ratioTo(client, splinterRate)
	lines = append(lines, verdict{"aggregate over 4 records to the client's: throughput", "at least 1.30x", "1.33x", times(gain), holds(gain >= 1.3)})
	if c, f := o.cell("aggregate alone", four, "client"), o.cell("aggregate alone", four, "function"); c != nil && f != nil {
		p50 := f.ratioTo(c, splinterP50)
		lines = append(lines, verdict{"the same: median latency, one at a time", "at most 0.65x", "0.62x", times(p50), holds(p50 <= 0.65)})
	}
	p50 := function.ratioTo(client, splinterP50)
	lines = append(lines, verdict{"the same: median latency under full load", "at most 0.65x", "-", times(p50), holds(p50 <= 0.65)})
	if redis := o.cell("aggregate", four, "redis lua"); redis != nil {
		native := function.ratioTo(redis, splinterRate)
		lines = append(lines, verdict{"aggregate over 4 records to Redis' Lua: throughput", "at least 3.00x", "-", times(native), holds(native >= 3)})
		if f := o.cell("aggregate", four, "fcall"); f != nil {
			resp := f.ratioTo(redis, splinterRate)
			lines = append(lines, verdict{"the same by FCALL, in Redis' protocol", "at least 3.00x", "-", times(resp), holds(resp >= 3)})
		}
	}
	return lines
}

func (o *splinterOutcome) judgeTAO() (lines []verdict) {
	combined := o.cell("tao", 1, "combined")
	if combined == nil {
		return nil
	}
	for _, w := range []struct{ way, paper string }{{"native", "1.14x"}, {"function", "1.14x"}, {"native, by the list's own record", "-"}} {
		c := o.cell("tao", 1, w.way)
		if c == nil {
			continue
		}
		gain := combined.ratioTo(c, splinterRate)
		lines = append(lines, verdict{"TAO 60/40, combined to " + w.way + ": throughput", "above 1.00x", w.paper, times(gain), holds(gain > 1)})
	}
	return lines
}

func (o *splinterOutcome) judgeHostile() (lines []verdict) {
	add := func(part string, every int, what string, figure func(splinterRound) float64, wanted string, fits func(float64) bool) {
		none, bad := o.cell(part, float64(every), noneName), o.cell(part, float64(every), loopsName)
		if none == nil || bad == nil {
			return
		}
		all := bad.ratiosTo(none, figure)
		r := median(all)
		lines = append(lines, verdict{fmt.Sprintf("endless loops at %s: %s", hostileName(every), what), wanted, "-", among(all), holds(fits(r))})
	}
	for _, part := range []string{"hostile", "hostile at a load"} {
		where := " under full load"
		if part != "hostile" {
			where = " at half of it"
		} else if calm := o.calm(); len(calm) > 0 {
			scatter := scatter(calm)
			add(part, 1e6, "throughput", splinterRate, fmt.Sprintf("1.00x within %.1f%%: pairs without any are %s", 100*scatter, among(calm)), func(r float64) bool { return r >= 1-scatter })
		}
		add(part, 1e6, "others' p99"+where, splinterP99, "at most 2.00x", func(r float64) bool { return r <= 2 })
		add(part, 1e3, "others' p99.9"+where, splinterP999, "at most 3.00x", func(r float64) bool { return r <= 3 })
	}
	return lines
}

// judgeKinds asks of everything hostile what is asked of loops.
func (o *splinterOutcome) judgeKinds() (lines []verdict) {
	for i, kind := range splinterKinds {
		for _, part := range []string{"kinds", "kinds at a load"} {
			none, bad := o.cell(part, float64(i), noneName), o.cell(part, float64(i), kind)
			if none == nil || bad == nil {
				continue
			}
			where := "under full load"
			if part != "kinds" {
				where = "at half of it"
			}
			all := bad.ratiosTo(none, splinterP999)
			lines = append(lines, verdict{fmt.Sprintf("%s: others' p99.9 %s", kind, where), "at most 3.00x", "-", among(all), holds(median(all) <= 3)})
		}
	}
	return lines
}

// calm is what pairs of rounds without anything bad have of each other's throughput.
func (o *splinterOutcome) calm() []float64 {
	none, again := o.cell("hostile", 0, noneName), o.cell("hostile", 0, againName)
	if none == nil || again == nil {
		return nil
	}
	return again.ratiosTo(none, splinterRate)
}

// scatter is how far from 1 ratios are that should be 1, at the median: less than that nobody can tell.
func scatter(ratios []float64) float64 {
	var apart []float64
	for _, r := range ratios {
		apart = append(apart, math.Abs(r-1))
	}
	return median(apart)
}

// among is the median of ratios, and between which they lie.
func among(all []float64) string {
	return fmt.Sprintf("%s (%s to %s in %d)", times(median(all)), times(slices.Min(all)), times(slices.Max(all)), len(all))
}

func (o *splinterOutcome) judgeInstall() []verdict {
	i := o.Install
	if i == nil {
		return nil
	}
	const wanted = 5 * time.Millisecond
	return []verdict{
		{fmt.Sprintf("%s functions of %s are installed and each was called: memory", grouped(int64(i.Functions)), many(i.Tenants, "tenant", "tenants")), "a quarter of the machine's", "-", bytesShort(i.Called), holds(i.Called <= i.Machine/4)},
		{"first call after a restart, p50", "at most 5 ms", "-", short(i.First.P50), holds(i.First.P50 <= wanted)},
		{"first call after a restart, p99", "at most 5 ms", "-", short(i.First.P99), holds(i.First.P99 <= wanted)},
	}
}
