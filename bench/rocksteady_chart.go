package bench

import (
	"fmt"
	"strings"
	"time"

	"github.com/ostrodb/ostro/bench/plot"
)

// chart shows throughput, median and 99.9th percentile over time, of the first round of each mode at YCSB's skew and the highest
// load, and of Redis below, which takes longer.
func (o *steadyOutcome) chart(where string) []byte {
	load := 0
	for _, r := range o.Rounds {
		load = max(load, r.Load)
	}
	var column plot.Column
	for _, system := range []string{"ostro", "redis"} {
		var rounds []steadyRound
		for _, r := range o.Rounds {
			if r.System == system && r.Round == 1 && r.Skew == usualSkew && r.Load == load && r.counts() {
				rounds = append(rounds, r)
			}
		}
		if len(rounds) > 0 {
			column = append(column, steadyCharts(system, where, rounds)...)
		}
	}
	return column.SVG()
}

// steadyCharts are three of one system.
func steadyCharts(system, where string, rounds []steadyRound) (all []plot.Chart) {
	for _, c := range []struct {
		title, unit string
		of          func(seriesPoint) float64
	}{
		{"operations a second", "thousands", func(p seriesPoint) float64 { return p.Ops / 1e3 }},
		{"median of clients", "ms", func(p seriesPoint) float64 { return float64(p.P50) / 1e6 }},
		{"p99.9 of clients", "ms", func(p seriesPoint) float64 { return float64(p.P999) / 1e6 }},
	} {
		l := plot.Lines{
			Title:    fmt.Sprintf("%s while half of a node's records moves: %s", system, c.title),
			Subtitle: where + "; " + moments(rounds), XLabel: "seconds", YLabel: c.unit,
		}
		for _, r := range rounds {
			curve := plot.Curve{Name: r.Mode}
			for _, p := range r.Series {
				curve.X, curve.Y = append(curve.X, p.At-r.Series[0].At), append(curve.Y, c.of(p))
			}
			l.Curves = append(l.Curves, curve)
		}
		all = append(all, l)
	}
	return all
}

// moments says from when to when migrations went.
func moments(rounds []steadyRound) string {
	var ends []string
	begin := 0.0
	for _, r := range rounds {
		begin = -r.Series[0].At
		ends = append(ends, fmt.Sprintf("%s %.1f", r.Mode, begin+r.Wall.Round(100*time.Millisecond).Seconds()))
	}
	return fmt.Sprintf("begin at %.1f s, ends: %s", begin, strings.Join(ends, ", "))
}
