package plot

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// The palette is Okabe and Ito's: told apart by every kind of eye, and on
// black as on white.
var palette = [...]string{"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#999999"}

const style = `<style>
text{font:12px system-ui,"DejaVu Sans",sans-serif;fill:#1f2328}
.title{font-size:16px;font-weight:600}
.quiet{fill:#59636e;font-size:11px}
.page{fill:#ffffff}
.rule{stroke:#d1d9e0;stroke-width:1}
.zero{stroke:#59636e;stroke-width:1}
@media(prefers-color-scheme:dark){
text{fill:#f0f6fc}
.quiet{fill:#9198a1}
.page{fill:#0d1117}
.rule{stroke:#3d444d}
.zero{stroke:#9198a1}
}
</style>
`

// svg collects elements; coordinates are pixels from the upper left corner.
type svg struct{ b strings.Builder }

func newSVG(width, height float64, title string) *svg {
	s := &svg{}
	fmt.Fprintf(&s.b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" width="%s" height="%s" role="img">`+"\n",
		px(width), px(height), px(width), px(height))
	fmt.Fprintf(&s.b, "<title>%s</title>\n", escape(title))
	s.b.WriteString(style)
	fmt.Fprintf(&s.b, `<rect class="page" width="%s" height="%s"/>`+"\n", px(width), px(height))
	return s
}

func (s *svg) text(x, y float64, class, anchor, words string) {
	fmt.Fprintf(&s.b, `<text x="%s" y="%s"`, px(x), px(y))
	if class != "" {
		fmt.Fprintf(&s.b, ` class="%s"`, class)
	}
	if anchor != "" {
		fmt.Fprintf(&s.b, ` text-anchor="%s"`, anchor)
	}
	fmt.Fprintf(&s.b, ">%s</text>\n", escape(words))
}

func (s *svg) rect(x, y, w, h float64, color string) {
	fmt.Fprintf(&s.b, `<rect x="%s" y="%s" width="%s" height="%s" fill="%s"/>`+"\n", px(x), px(y), px(w), px(h), color)
}

func (s *svg) line(x1, y1, x2, y2 float64, class string) {
	fmt.Fprintf(&s.b, `<line x1="%s" y1="%s" x2="%s" y2="%s" class="%s"/>`+"\n", px(x1), px(y1), px(x2), px(y2), class)
}

func (s *svg) path(points [][2]float64, color string) {
	s.b.WriteString(`<polyline fill="none" stroke-width="2" stroke-linejoin="round" stroke="` + color + `" points="`)
	for i, p := range points {
		if i > 0 {
			s.b.WriteByte(' ')
		}
		s.b.WriteString(px(p[0]) + "," + px(p[1]))
	}
	s.b.WriteString("\"/>\n")
}

func (s *svg) done() []byte {
	s.b.WriteString("</svg>\n")
	return []byte(s.b.String())
}

// px writes a coordinate with one decimal at most.
func px(v float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0")
}

func escape(words string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(words)) // a Builder never fails
	return b.String()
}

// wide estimates how many pixels the words take at 12 pixels.
func wide(words string) float64 { return 7 * float64(len([]rune(words))) }

func color(i int) string { return palette[i%len(palette)] }
