package bench

import "math"

// verdict is one line of a claim, and whether it held in this run.
type verdict struct {
	Line   string `json:"line"`
	Wanted string `json:"wanted"`
	Paper  string `json:"paper,omitempty"`
	Ours   string `json:"ours"`
	Holds  string `json:"holds"` // yes, no, or why it was not judged
}

// reaches tells whether a ratio is as high as wanted. One to nothing is none.
func reaches(ratio, wanted float64) bool { return ratio >= wanted && !math.IsInf(ratio, 1) }

// holds judges; what is not a number never holds.
func holds(is bool) string {
	if is {
		return "yes"
	}
	return "NO"
}

// verdictsTable shows all of them.
func verdictsTable(all []verdict) table {
	t := table{title: "What must hold", names: 5, head: []string{"claim", "wanted", "paper", "here", "holds"}}
	for _, v := range all {
		paper := v.Paper
		if paper == "" {
			paper = "-"
		}
		t.add(v.Line, v.Wanted, paper, v.Ours, v.Holds)
	}
	return t
}
