package casestudy

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"
)

// PaperFigure is one of the paper's, to stand beside ours: a figure of the first mode
// is so many times lower than that of another, with busy replicas.
type PaperFigure struct {
	Mode  string  `json:"mode"`
	What  string  `json:"what"` // average, p95 or p99
	Times float64 `json:"times"`
	Note  string  `json:"note"`
}

// Report is what a benchmark found.
type Report struct {
	Study    string        `json:"study"`
	Claim    string        `json:"claim"`
	Paper    []PaperFigure `json:"paper"`
	Command  string        `json:"command"`
	Machine  string        `json:"machine"`
	Started  time.Time     `json:"started"`
	Replicas int           `json:"replicas"`
	Records  int           `json:"records"`
	Busy     int           `json:"busy_processes"`
	RealTime bool          `json:"real_time"`
	Cells    []Cell        `json:"cells"`
}

// Cell is one mode under one load, all rounds together.
type Cell struct {
	Load string `json:"load"`
	Mode string `json:"mode"`
	Latency
	// Ratios are this mode's figures over the first mode's.
	Ratios map[string]float64 `json:"ratios"`

	took []time.Duration
}

func newReport(s Study, f benchFlags) *Report {
	return &Report{
		Study: s.Name, Claim: s.Claim, Paper: s.Paper, Command: strings.Join(append([]string{"bench"}, os.Args[1:]...), " "),
		Machine: fmt.Sprintf("%d cores, %s, %s", runtime.NumCPU(), runtime.GOARCH, runtime.Version()),
		Started: time.Now(), Replicas: f.replicas, Records: f.records, Busy: f.busy * runtime.NumCPU(),
	}
}

// add adds a round's updates.
func (r *Report) add(load, mode string, took []time.Duration) {
	for i := range r.Cells {
		if c := &r.Cells[i]; c.Load == load && c.Mode == mode {
			c.took = append(c.took, took...)
			r.sum()
			return
		}
	}
	r.Cells = append(r.Cells, Cell{Load: load, Mode: mode, took: took})
	r.sum()
}

func (r *Report) sum() {
	first := map[string]Latency{}
	for i := range r.Cells {
		c := &r.Cells[i]
		c.Latency = summarize(c.took)
		if _, ok := first[c.Load]; !ok {
			first[c.Load] = c.Latency
		}
		base := first[c.Load]
		c.Ratios = map[string]float64{
			"average": ratio(c.Average, base.Average), "p95": ratio(c.P95, base.P95), "p99": ratio(c.P99, base.P99),
		}
	}
}

func ratio(a, b time.Duration) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

func (r *Report) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// write prints a table for people.
func (r *Report) write(w io.Writer) {
	fmt.Fprintf(w, "%s: updates of YCSB-A, %d replicas, %d records; %d busy processes where it says busy\n\n", r.Study, r.Replicas, r.Records, r.Busy)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "load\tmode\tupdates\taverage\tp50\tp95\tp99\tmax\taverage\tp95\tp99\tpaper\t")
	for _, c := range r.Cells {
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%.1fx\t%.1fx\t%.1fx\t%s\t\n", c.Load, c.Mode, c.Updates,
			short(c.Average), short(c.P50), short(c.P95), short(c.P99), short(c.Max),
			c.Ratios["average"], c.Ratios["p95"], c.Ratios["p99"], r.paper(c))
	}
	_ = t.Flush()
	fmt.Fprintf(w, "\nclaim    %s\n", r.Claim)
	for _, p := range r.Paper {
		fmt.Fprintf(w, "paper    %s\n", p.Note)
	}
	fmt.Fprintf(w, "machine  %s; front end at real-time priority: %v\nrepeat   %s\n", r.Machine, r.RealTime, r.Command)
}

// paper is the paper's ratio for a cell, if it has one.
func (r *Report) paper(c Cell) string {
	for _, p := range r.Paper {
		if c.Load == contended && p.Mode == c.Mode {
			return fmt.Sprintf("%s %.1fx", p.What, p.Times)
		}
	}
	return "-"
}

// short writes a duration with few digits.
func short(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%.1f ms", float64(d)/1e6)
	default:
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
}

const schedRR = 2

// realTime asks for SCHED_RR for all threads of this process. Not SCHED_FIFO: the
// runtime's threads wait for each other by yielding, in vain if none gives up its core.
func realTime(priority int) error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return fmt.Errorf("list threads: %w", err)
	}
	for _, t := range threads {
		tid, _ := strconv.Atoi(t.Name())
		attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: schedRR, Priority: uint32(priority)}
		if err := unix.SchedSetAttr(tid, &attr, 0); err != nil && err != unix.ESRCH {
			return fmt.Errorf("ask for real-time priority: %w", err)
		}
	}
	return nil
}
