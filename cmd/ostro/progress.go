package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server"
)

// progressBar draws one line that is overwritten in place:
//
//	replay  ███████████░░░░░░░░░  56%  4.2 GiB of 7.5 GiB  1.1 GiB/s  3s left
//
// A new stage starts a new line. Updates may come from any goroutine and as
// often as they like; it draws ten times a second at most.
type progressBar struct {
	out   io.Writer
	width func() int
	now   func() time.Time

	mu      sync.Mutex
	last    store.Progress
	began   time.Time // of the stage
	drawn   time.Time
	visible bool // the cursor stands behind a drawn line
}

const drawEvery = 100 * time.Millisecond

// newProgressBar returns a bar on f, or nil if nobody looks at it.
func newProgressBar(f *os.File) *progressBar {
	if !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return &progressBar{out: f, now: time.Now, width: func() int {
		width, _, err := term.GetSize(int(f.Fd()))
		if err != nil || width <= 0 {
			return 80
		}
		return width
	}}
}

// Update tells how far the work is. It does nothing on a nil bar.
func (b *progressBar) Update(p store.Progress) {
	if b == nil || p.Done == 0 && p.Total == 0 {
		return // Nobody looks, or there is nothing to do.
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if p.Stage != b.last.Stage || b.began.IsZero() {
		b.endLine()
		b.began, b.drawn = now, time.Time{}
	}
	b.last = p
	if now.Sub(b.drawn) >= drawEvery || p.Done >= p.Total && p.Total > 0 {
		b.draw(now)
	}
}

// line draws a line of the caller's own making, in place of the last one.
func (b *progressBar) line(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fmt.Fprint(b.out, "\r", text, "\x1b[K")
	b.visible = true
}

// Finish leaves the last state on the screen and goes to a new line.
func (b *progressBar) Finish() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.endLine()
}

// Clear removes the line, so that something else can be printed in its place.
func (b *progressBar) Clear() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.visible {
		fmt.Fprint(b.out, "\r\x1b[K")
		b.visible = false
	}
}

func (b *progressBar) endLine() {
	if b.visible {
		fmt.Fprintln(b.out)
		b.visible = false
	}
}

func (b *progressBar) draw(now time.Time) {
	line := progressLine(b.last, now.Sub(b.began), b.width()-1)
	fmt.Fprint(b.out, "\r", line, "\x1b[K")
	b.drawn, b.visible = now, true
}

// progressLine writes p in at most width columns.
func progressLine(p store.Progress, took time.Duration, width int) string {
	tail := "  " + amount(p.Done, p.Unit)
	var bar string
	if p.Total > 0 {
		share := min(1, float64(p.Done)/float64(p.Total))
		tail = fmt.Sprintf("  %3.0f%%  %s of %s", share*100, amount(p.Done, p.Unit), amount(p.Total, p.Unit))
		bar = blocks(share, min(24, width-len(p.Stage)-len(tail)-26))
	}
	if took > time.Second/2 && p.Done > 0 {
		perSecond := float64(p.Done) / took.Seconds()
		tail += "  " + amount(int64(perSecond), p.Unit) + "/s"
		if left := float64(p.Total-p.Done) / perSecond; p.Total > 0 && p.Done < p.Total {
			tail += fmt.Sprintf("  %.0fs left", left)
		}
	}
	line := []rune(p.Stage + "  " + bar + tail)
	return string(line[:min(len(line), max(width, 0))])
}

func blocks(share float64, cells int) string {
	if cells < 4 {
		return ""
	}
	full := int(share * float64(cells))
	return strings.Repeat("█", full) + strings.Repeat("░", cells-full)
}

// amount writes a number with its unit; bytes as people read them.
func amount(n int64, unit string) string {
	switch unit {
	case "bytes", "byte", "B":
		return server.Size(n).Short()
	case "":
		return thousands(n)
	default:
		return thousands(n) + " " + unit
	}
}

// thousands groups digits: 1,234,567.
func thousands(n int64) string {
	digits := fmt.Sprint(n)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// counted writes a number and what it counts: 1 key, 2 keys, 3 entries.
func counted(n int64, what string) string {
	stem, y := strings.CutSuffix(what, "y")
	switch {
	case n == 1:
	case strings.HasSuffix(what, "ch"):
		what += "es"
	case y && what != "key":
		what = stem + "ies"
	default:
		what += "s"
	}
	return thousands(n) + " " + what
}
