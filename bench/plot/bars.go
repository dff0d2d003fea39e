package plot

import "math"

// Bars is a chart of horizontal bars: a row for each thing measured, in it a
// bar for each series. Rows may be many; the chart grows downwards.
type Bars struct {
	Title, Subtitle string
	Unit            string // of the values, below the axis
	Log             bool   // the axis is logarithmic: for values that lie powers of ten apart
	Rows            []string
	Series          []Series
}

// Series is one value a row; NaN is a gap.
type Series struct {
	Name   string
	Values []float64
}

const (
	chartWidth = 880
	margin     = 20
	barHeight  = 14
	rowGap     = 10
	headHeight = 78
	footHeight = 44
	valueRoom  = 64 // right of the longest bar, for its number
)

// SVG draws the chart.
func (c Bars) SVG() []byte {
	labels := 0.0
	for _, r := range c.Rows {
		labels = max(labels, wide(r))
	}
	left := margin + labels + 8
	rowHeight := float64(len(c.Series)*barHeight + rowGap)
	bottom := headHeight + rowHeight*float64(len(c.Rows))
	s := newSVG(chartWidth, bottom+footHeight, c.Title)
	header(s, c.Title, c.Subtitle, c.names())

	marks, place := c.axis(chartWidth - margin - valueRoom - left)
	for i, v := range marks {
		x := left + place(v)
		class := "rule"
		if i == 0 {
			class = "zero"
		}
		s.line(x, headHeight-4, x, bottom, class)
		s.text(x, bottom+16, "quiet", "middle", number(v))
	}
	s.text(left, bottom+34, "quiet", "", c.Unit)
	for row, name := range c.Rows {
		y := headHeight + rowHeight*float64(row)
		s.text(left-8, y+rowHeight/2, "", "end", name)
		c.row(s, row, left, y+rowGap/2, place)
	}
	return s.done()
}

func (c Bars) row(s *svg, row int, left, y float64, place func(float64) float64) {
	for i, series := range c.Series {
		v := series.Values[row]
		if math.IsNaN(v) || c.Log && v <= 0 {
			continue
		}
		top := y + float64(i*barHeight)
		s.rect(left, top, place(v), barHeight-2, color(i))
		s.text(left+place(v)+5, top+barHeight-4, "quiet", "", number(v))
	}
}

// axis returns the marks and how far right of the first a value lies.
func (c Bars) axis(width float64) ([]float64, func(float64) float64) {
	if !c.Log {
		marks := ticks(c.top())
		scale := width / marks[len(marks)-1]
		return marks, func(v float64) float64 { return v * scale }
	}
	marks := powers(c.least(), c.top())
	first, last := math.Log10(marks[0]), math.Log10(marks[len(marks)-1])
	return marks, func(v float64) float64 { return (math.Log10(v) - first) / (last - first) * width }
}

// least is the smallest value above zero.
func (c Bars) least() float64 {
	least := math.Inf(1)
	for _, s := range c.Series {
		for _, v := range s.Values {
			if v > 0 && v < least {
				least = v
			}
		}
	}
	return least
}

func (c Bars) names() []string {
	var names []string
	for _, s := range c.Series {
		names = append(names, s.Name)
	}
	return names
}

func (c Bars) top() float64 {
	top := 0.0
	for _, s := range c.Series {
		for _, v := range s.Values {
			if v > top {
				top = v
			}
		}
	}
	return top
}

// header writes the title, the subtitle and the legend.
func header(s *svg, title, subtitle string, names []string) {
	s.text(margin, 26, "title", "", title)
	s.text(margin, 44, "quiet", "", subtitle)
	x := float64(margin)
	for i, name := range names {
		s.rect(x, 54, 11, 11, color(i))
		s.text(x+16, 64, "", "", name)
		x += 16 + wide(name) + 18
	}
}
