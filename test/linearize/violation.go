package linearize

import (
	"fmt"
	"slices"
	"strings"
)

// Violation is a history that no order explains, cut to its shortest beginning
// of that kind.
type Violation struct {
	Object string
	Ops    []Op
}

// shown is how many of the last operations are told; those without an answer always are.
const shown = 40

// Error tells the history, the oldest operation first. The last answer is the one that
// cannot be.
func (v *Violation) Error() string {
	ops := slices.Clone(v.Ops)
	slices.SortStableFunc(ops, func(a, b Op) int { return int(min(1, max(-1, a.Call-b.Call))) })
	last := lastAnswer(ops)
	var b strings.Builder
	fmt.Fprintf(&b, "%s: no order of %d operations explains what clients were told\n", v.Object, len(ops))
	for i, o := range ops {
		if i < len(ops)-shown && o.answered() && i != last {
			continue
		}
		mark := ""
		if i == last {
			mark = "   <- cannot be, after all that was answered before"
		}
		fmt.Fprintf(&b, "  %14s .. %-14s client %-4d %s%s\n", At(o.Call), returned(o), o.Client, o, mark)
	}
	return b.String()
}

func returned(o Op) string {
	if !o.answered() {
		return "?"
	}
	return At(o.Return)
}

func lastAnswer(ops []Op) int {
	last := -1
	for i, o := range ops {
		if o.answered() && (last < 0 || o.Return > ops[last].Return) {
			last = i
		}
	}
	return last
}
