package bench

import (
	"fmt"

	"github.com/ostrodb/ostro/bench/plot"
)

func (o *shadowOutcome) chart(where string) []byte {
	var all plot.Column
	add := func(c plot.Lines) {
		c.Subtitle = where
		all = append(all, c)
	}
	if len(o.Sessions) > 0 {
		all = append(all, o.sessionBars(where))
	}
	if len(o.Ownership) > 0 {
		add(o.ownershipLines())
	}
	if len(o.Memory) > 0 {
		all = append(all, o.memoryBars(where))
	}
	for _, s := range o.Scaleout {
		add(throughputLines(s))
	}
	if len(o.Scaleout) > 0 {
		add(movesLines("Operations that wait at the target", "operations", o.Scaleout, func(p shadowPoint) float64 { return p.Waiting }))
	}
	if len(o.Compaction) > 0 {
		add(movesLines("Records that the target needs the source's log for", "records", o.Compaction, func(p shadowPoint) float64 { return float64(p.Remaining) }))
	}
	return all.SVG()
}

func (o *shadowOutcome) sessionBars(where string) plot.Bars {
	c := plot.Bars{Title: "Sessions: throughput by the size of a batch", Subtitle: where, Unit: "operations per second"}
	for _, cell := range o.Sessions {
		name := many(cell.Threads, "thread", "threads")
		if n := len(c.Series); n == 0 || c.Series[n-1].Name != name {
			c.Series = append(c.Series, plot.Series{Name: name})
		}
		if len(c.Series) == 1 {
			c.Rows = append(c.Rows, fmt.Sprintf("batches of %d", cell.Batch))
		}
		s := &c.Series[len(c.Series)-1]
		s.Values = append(s.Values, medianOf(cell.Rounds, roundRate))
	}
	return c
}

func (o *shadowOutcome) ownershipLines() plot.Lines {
	c := plot.Lines{Title: "Throughput by the number of ranges that a node owns", XLabel: "ranges", YLabel: "operations per second"}
	for i, cell := range o.Ownership {
		if i < ownershipColumns {
			c.Curves = append(c.Curves, plot.Curve{Name: cell.Check})
		}
		curve := &c.Curves[i%ownershipColumns]
		curve.X, curve.Y = append(curve.X, float64(cell.Ranges)), append(curve.Y, medianOf(cell.Rounds, roundRate))
	}
	return c
}

func (o *shadowOutcome) memoryBars(where string) plot.Bars {
	c := plot.Bars{Title: "Throughput by the share of the data in memory", Subtitle: where, Unit: "operations per second", Log: true}
	at := map[string]int{}
	for _, cell := range o.Memory {
		i, known := at[cell.Distribution]
		if !known {
			i = len(c.Series)
			at[cell.Distribution] = i
			c.Series = append(c.Series, plot.Series{Name: cell.Distribution})
		}
		if i == 0 {
			c.Rows = append(c.Rows, fmt.Sprintf("%.0f%%", 100*cell.Share))
		}
		c.Series[i].Values = append(c.Series[i].Values, medianOf(cell.Rounds, roundRate))
	}
	return c
}

// throughputLines is one move over time.
func throughputLines(s scaleout) plot.Lines {
	all, source, target := plot.Curve{Name: "both"}, plot.Curve{Name: "source"}, plot.Curve{Name: "target"}
	for _, p := range s.Series {
		x := p.At - s.Series[0].At
		for _, one := range []struct {
			c *plot.Curve
			y float64
		}{{&all, p.Source + p.Target}, {&source, p.Source}, {&target, p.Target}} {
			one.c.X, one.c.Y = append(one.c.X, x), append(one.c.Y, one.y)
		}
	}
	return plot.Lines{Title: "Throughput while a part of the hash space moves: " + s.Case, XLabel: "seconds", YLabel: "operations per second", Curves: []plot.Curve{all, source, target}}
}

// movesLines shows one figure of several moves over time.
func movesLines(title, unit string, moves []scaleout, figure func(shadowPoint) float64) plot.Lines {
	c := plot.Lines{Title: title, XLabel: "seconds", YLabel: unit}
	for _, s := range moves {
		curve := plot.Curve{Name: s.Case}
		for _, p := range s.Series {
			curve.X, curve.Y = append(curve.X, p.At-s.Series[0].At), append(curve.Y, figure(p))
		}
		c.Curves = append(c.Curves, curve)
	}
	return c
}
