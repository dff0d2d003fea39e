package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"
)

// Report is one run of one experiment, as --json writes it.
type Report struct {
	Experiment string    `json:"experiment"`
	Claim      string    `json:"claim"`
	Machine    Machine   `json:"machine"`
	Command    string    `json:"command"`
	Started    time.Time `json:"started"`
	Seconds    float64   `json:"seconds"`
	Company    Company   `json:"company"`
	Results    any       `json:"results"`
	Notes      []string  `json:"notes,omitempty"`
}

// outcome is what an experiment found. It marshals to JSON by itself.
type outcome interface {
	tables() []table
	notes() []string // what a reader must know to judge the figures
	chart(where string) []byte
}

// emit writes the report to w as a table or as JSON, and the chart to its
// file.
func emit(w io.Writer, rep Report, out outcome, f commonFlags) error {
	rep.Seconds = time.Since(rep.Started).Seconds()
	rep.Results, rep.Notes = out, out.notes()
	if f.plot != "" {
		if err := os.WriteFile(f.plot, out.chart(rep.where()), 0o644); err != nil {
			return fmt.Errorf("write the plot: %w", err)
		}
	}
	if f.json {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(rep)
	}
	for _, t := range out.tables() {
		fmt.Fprintln(w)
		t.write(w)
	}
	fmt.Fprintln(w)
	for _, note := range rep.Notes {
		fmt.Fprintf(w, "· %s\n", note)
	}
	fmt.Fprintf(w, "machine  %s\ncompany  %s\ncommit   %s\nrepeat   %s\n",
		rep.Machine.line(), rep.Company, rep.Machine.Commit, rep.Command)
	return nil
}

// muchCompany is from where on a chart says that others used the cores.
const muchCompany = 0.05

// where is what a chart says of its origin.
func (r Report) where() string {
	words := r.Machine.line()
	if taken := r.Company.Others + r.Company.Stolen; taken > muchCompany {
		words += fmt.Sprintf("; others took %.0f%% of the cores", 100*taken)
	}
	return words
}

func (m Machine) line() string {
	return fmt.Sprintf("%d cores of %s, %s, Linux %s, %s", m.Cores, m.CPU, bytesShort(m.MemoryBytes), m.Kernel, m.Go)
}
