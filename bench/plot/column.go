package plot

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
)

// Chart is what can be drawn.
type Chart interface{ SVG() []byte }

// Column is charts one below the other, in one picture.
type Column []Chart

var height = regexp.MustCompile(`^<svg [^>]* height="([0-9.]+)"`)

// SVG draws all of them.
func (c Column) SVG() []byte {
	var all bytes.Buffer
	down := 0.0
	for _, chart := range c {
		one := chart.SVG()
		found := height.FindSubmatch(one)
		high, _ := strconv.ParseFloat(string(found[1]), 64) // px wrote it
		fmt.Fprintf(&all, `<svg y="%s" `, px(down))
		all.Write(bytes.TrimPrefix(one, []byte("<svg ")))
		down += high
	}
	var page bytes.Buffer
	fmt.Fprintf(&page, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %s" width="%d" height="%s">`+"\n", chartWidth, px(down), chartWidth, px(down))
	page.Write(all.Bytes())
	page.WriteString("</svg>\n")
	return page.Bytes()
}
