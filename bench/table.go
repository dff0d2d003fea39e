package bench

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// table is what people see on the screen: the first columns are names and
// stand left, the others are figures and stand right.
type table struct {
	title string
	names int // how many columns are names
	head  []string
	rows  [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// write prints the table, each column as wide as its widest cell.
func (t *table) write(w io.Writer) {
	widths := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	if t.title != "" {
		fmt.Fprintf(w, "%s\n", t.title)
	}
	t.writeRow(w, t.head, widths)
	rule := 2 * (len(widths) - 1)
	for _, n := range widths {
		rule += n
	}
	fmt.Fprintln(w, strings.Repeat("─", rule))
	for _, row := range t.rows {
		t.writeRow(w, row, widths)
	}
}

func (t *table) writeRow(w io.Writer, row []string, widths []int) {
	var b strings.Builder
	for i, cell := range row {
		pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
		if i > 0 {
			b.WriteString("  ")
		}
		if i < t.names {
			b.WriteString(cell + pad)
		} else {
			b.WriteString(pad + cell)
		}
	}
	fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
}

// The functions below write one figure; what is not known is a dash.

func decimals(v float64, n int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "-"
	}
	return fmt.Sprintf("%.*f", n, v)
}

func times(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "-"
	}
	return fmt.Sprintf("%.2fx", v)
}

// rate writes operations per second with thousands set apart.
func rate(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return grouped(int64(math.Round(v)))
}

// grouped writes 1234567 as 1,234,567.
func grouped(v int64) string {
	s := fmt.Sprint(v)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// short writes a duration with three digits.
func short(d time.Duration) string {
	switch {
	case d <= 0:
		return "-"
	case d < time.Microsecond:
		return fmt.Sprintf("%d ns", d.Nanoseconds())
	case d < time.Millisecond:
		return threeDigits(float64(d)/1e3) + " µs"
	case d < time.Second:
		return threeDigits(float64(d)/1e6) + " ms"
	default:
		return threeDigits(d.Seconds()) + " s"
	}
}

func threeDigits(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

// bytesShort writes a number of bytes with three digits.
func bytesShort(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	v, u := float64(n), 0
	for v >= 1000 && u < len(units)-1 {
		v, u = v/1024, u+1
	}
	if u == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return threeDigits(v) + " " + units[u]
}

// many is a number with its noun.
func many(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
