package bench

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// progress tells on standard error what a long run is doing: a line that
// rewrites itself on a terminal, one line per step elsewhere.
type progress struct {
	w        io.Writer
	terminal bool
	step     string
	shown    time.Time
	width    int
}

// redrawEvery keeps the bar from costing anything.
const redrawEvery = 100 * time.Millisecond

func newProgress(w io.Writer) *progress {
	p := &progress{w: w}
	if f, ok := w.(*os.File); ok {
		_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
		p.terminal = err == nil
	}
	return p
}

// begin names the next step.
func (p *progress) begin(format string, args ...any) {
	p.step = fmt.Sprintf(format, args...)
	if p.terminal {
		p.line(p.step)
		return
	}
	fmt.Fprintln(p.w, p.step)
}

// set shows how far the step has come.
func (p *progress) set(done, total uint64) {
	if !p.terminal || total == 0 || time.Since(p.shown) < redrawEvery {
		return
	}
	p.shown = time.Now()
	const cells = 24
	full := int(cells * min(done, total) / total)
	bar := strings.Repeat("█", full) + strings.Repeat("░", cells-full)
	p.line(fmt.Sprintf("%s  %s %3d%%", p.step, bar, 100*min(done, total)/total))
}

// end clears the line, so that the table starts on a clean one.
func (p *progress) end() {
	if p.terminal {
		p.line("")
		fmt.Fprint(p.w, "\r")
	}
}

func (p *progress) line(s string) {
	n := len([]rune(s))
	fmt.Fprintf(p.w, "\r%s%s", s, strings.Repeat(" ", max(0, p.width-n)))
	p.width = n
}

// countdown tells how much of a run of many like steps is left.
type countdown struct {
	steps, done int
	began       time.Time
}

// step begins the next one, and says which it is and how long all may take from here on.
func (c *countdown) step() string {
	if c.done == 0 {
		c.began = time.Now()
	}
	c.done++
	text := fmt.Sprintf("%d of %d", c.done, c.steps)
	if past := c.done - 1; past > 0 {
		left := time.Since(c.began) / time.Duration(past) * time.Duration(c.steps-past)
		text += fmt.Sprintf(", about %v left", left.Round(time.Second))
	}
	return text
}
