package plot

import "math"

// Lines is a chart of values over a common horizontal axis that starts at
// zero, such as seconds.
type Lines struct {
	Title, Subtitle string
	XLabel, YLabel  string
	Curves          []Curve
}

// Curve is one line; X only grows.
type Curve struct {
	Name string
	X, Y []float64
}

const linesHeight = 400

// SVG draws the chart.
func (c Lines) SVG() []byte {
	s := newSVG(chartWidth, linesHeight, c.Title)
	var names []string
	right, top := 0.0, 0.0
	for _, curve := range c.Curves {
		names = append(names, curve.Name)
		for i := range curve.X {
			right, top = max(right, curve.X[i]), maxNumber(top, curve.Y[i])
		}
	}
	header(s, c.Title, c.Subtitle, names)

	xs, ys := ticks(right), ticks(top)
	f := frame{
		left: 70, top: headHeight + 14, right: chartWidth - margin, bottom: linesHeight - footHeight,
		xEnd: xs[len(xs)-1], yEnd: ys[len(ys)-1],
	}
	f.draw(s, xs, ys)
	s.text(f.left, f.top-8, "quiet", "", c.YLabel)
	s.text(f.right, f.bottom+34, "quiet", "end", c.XLabel)
	for i, curve := range c.Curves {
		for _, points := range f.pieces(curve) {
			if len(points) == 1 {
				s.rect(points[0][0]-2, points[0][1]-2, 4, 4, color(i)) // a point alone has no line
				continue
			}
			s.path(points, color(i))
		}
	}
	return s.done()
}

// frame maps values to pixels.
type frame struct{ left, top, right, bottom, xEnd, yEnd float64 }

func (f frame) at(x, y float64) [2]float64 {
	return [2]float64{
		f.left + x/f.xEnd*(f.right-f.left),
		f.bottom - y/f.yEnd*(f.bottom-f.top),
	}
}

func (f frame) draw(s *svg, xs, ys []float64) {
	for i, y := range ys {
		class := "rule"
		if i == 0 {
			class = "zero"
		}
		p := f.at(0, y)
		s.line(f.left, p[1], f.right, p[1], class)
		s.text(f.left-8, p[1]+4, "quiet", "end", number(y))
	}
	for _, x := range xs {
		s.text(f.at(x, 0)[0], f.bottom+16, "quiet", "middle", number(x))
	}
}

// pieces cuts the curve at its gaps.
func (f frame) pieces(c Curve) [][][2]float64 {
	var all [][][2]float64
	var piece [][2]float64
	for i := range c.X {
		if math.IsNaN(c.Y[i]) {
			if piece != nil {
				all = append(all, piece)
			}
			piece = nil
			continue
		}
		piece = append(piece, f.at(c.X[i], c.Y[i]))
	}
	if piece != nil {
		all = append(all, piece)
	}
	return all
}

func maxNumber(a, b float64) float64 {
	if math.IsNaN(b) {
		return a
	}
	return max(a, b)
}
