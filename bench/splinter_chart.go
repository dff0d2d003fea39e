package bench

import "github.com/ostrodb/ostro/bench/plot"

// splinterLines are the parts that are drawn as lines, by what their cases are about.
var splinterLines = map[string]string{
	"tenants":   "tenants",
	"aggregate": "records",
	"compute":   "multiplications",
}

func (o *splinterOutcome) chart(where string) []byte {
	var all plot.Column
	for _, t := range splinterTitles {
		cells := o.part(t.part)
		if len(cells) == 0 {
			continue
		}
		if label, lines := splinterLines[t.part]; lines && cells[0].X != cells[len(cells)-1].X {
			all = append(all, splinterCurves(cells, plot.Lines{Title: t.title, Subtitle: where, XLabel: label, YLabel: "operations per second"}))
			continue
		}
		bars := plot.Bars{Title: t.title, Subtitle: where, Unit: "operations per second"}
		figure := splinterRate
		switch t.part {
		case "get at a load", "skew", "long", "hostile at a load", "kinds at a load", "aggregate alone":
			bars.Unit, bars.Log = "µs, 99th percentile", true
			figure = func(r splinterRound) float64 { return splinterP99(r) / 1e3 }
		}
		all = append(all, splinterBars(cells, figure, bars))
	}
	if i := o.Install; i != nil {
		all = append(all, plot.Bars{
			Title: "Memory of many functions", Subtitle: where, Unit: "MiB", Rows: []string{"before", "installed", "each called", "restarted"},
			Series: []plot.Series{{Name: "resident", Values: []float64{mib(i.Empty), mib(i.Full), mib(i.Called), mib(i.Restarted)}}},
		})
	}
	return all.SVG()
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// splinterCurves is throughput, a curve for each way.
func splinterCurves(cells []splinterCell, c plot.Lines) plot.Lines {
	at := map[string]int{}
	for i := range cells {
		n, known := at[cells[i].Way]
		if !known {
			n = len(c.Curves)
			at[cells[i].Way] = n
			c.Curves = append(c.Curves, plot.Curve{Name: cells[i].Way})
		}
		c.Curves[n].X = append(c.Curves[n].X, cells[i].X)
		c.Curves[n].Y = append(c.Curves[n].Y, cells[i].of(splinterRate))
	}
	return c
}

// splinterBars has a row for every case and way.
func splinterBars(cells []splinterCell, figure func(splinterRound) float64, c plot.Bars) plot.Bars {
	c.Series = []plot.Series{{Name: "median of rounds"}}
	for i := range cells {
		c.Rows = append(c.Rows, cells[i].Case+", "+cells[i].Way)
		c.Series[0].Values = append(c.Series[0].Values, cells[i].of(figure))
	}
	return c
}
