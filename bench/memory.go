package bench

// Claim: a record of a 30 B key and a 100 B value takes less memory in Ostro
// than in Redis 7.0 (215 B here with 10M records; the newest Redis 195 B).
//
// Refuted by: more resident memory a record than Redis in the same run, after
// the same load.

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ostrodb/ostro/bench/plot"
	"github.com/ostrodb/ostro/bench/workload"
)

const memoryClaim = "a record takes less memory than in Redis"

type memoryFlags struct {
	commonFlags
	serverFlags
	records count
	value   int
}

func memoryCommand() *cobra.Command {
	f := memoryFlags{records: 10e6}
	cmd := &cobra.Command{
		Use:   "memory",
		Short: "Compare how much memory a record takes in several servers",
		Long: `Loads the same records (30 B keys) into each server, one server after the other, and
divides what its resident memory grew by.`,
		Example: `  ostro bench memory --with-redis --with-ostro
  ostro bench memory --records 1M --value 32 --with-redis --with-ostro --plot memory.svg
  ostro bench memory --with-ostro --against 127.0.0.1:7000`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return experiment(cmd, memoryClaim, f.commonFlags, func(ctx context.Context, p *progress) (outcome, error) {
				return measureMemory(ctx, p, f)
			})
		},
	}
	f.commonFlags.add(cmd)
	f.serverFlags.add(cmd)
	cmd.Flags().Var(&f.records, "records", "records to load")
	cmd.Flags().IntVar(&f.value, "value", 100, "bytes of a value")
	return cmd
}

// memoryOutcome is what `ostro bench memory` found.
type memoryOutcome struct {
	Records    uint64         `json:"records"`
	KeyBytes   int            `json:"key_bytes"`
	ValueBytes int            `json:"value_bytes"`
	Results    []memoryResult `json:"servers"`
}

// memoryResult is one server's memory before and after the load.
type memoryResult struct {
	Target    string   `json:"target"`
	Version   string   `json:"version"`
	Empty     resident `json:"empty"`
	Full      resident `json:"full"`
	PerRecord float64  `json:"bytes_per_record"`
}

func measureMemory(ctx context.Context, p *progress, f memoryFlags) (*memoryOutcome, error) {
	out := &memoryOutcome{Records: uint64(f.records), KeyBytes: workload.Text30.Len(), ValueBytes: f.value}
	launches, err := f.launches()
	if err != nil {
		return nil, err
	}
	for _, l := range launches {
		t, err := l.start(ctx)
		if err != nil {
			return nil, err
		}
		err = out.measure(ctx, p, t)
		t.stop()
		if err != nil {
			return nil, err
		}
	}
	for _, where := range f.against {
		t, err := attach(where)
		if err != nil {
			return nil, err
		}
		if err := out.measure(ctx, p, t); err != nil {
			return nil, err
		}
	}
	if len(out.Results) == 0 {
		return nil, errors.New("no server to measure: give --with-redis, --with-ostro or --against HOST:PORT")
	}
	return out, nil
}

func (o *memoryOutcome) measure(ctx context.Context, p *progress, t *target) error {
	if t.Pid == 0 {
		return fmt.Errorf("%s does not tell its process, so its memory cannot be read", t.Name)
	}
	empty, err := residentOf(t.Pid)
	if err != nil {
		return err
	}
	p.begin("load %s records into %s", grouped(int64(o.Records)), t.Name)
	value := make([]byte, o.ValueBytes)
	workload.FillValue(value, 0, 0)
	if err := fill(ctx, p, t, workload.Text30, 0, o.Records, value); err != nil {
		return fmt.Errorf("load %s: %w", t.Name, err)
	}
	full, err := residentOf(t.Pid)
	if err != nil {
		return err
	}
	o.Results = append(o.Results, memoryResult{
		t.Name, t.Version, empty, full,
		float64(full.Total-empty.Total) / float64(o.Records),
	})
	return nil
}

func (o *memoryOutcome) tables() []table {
	t := table{
		title: fmt.Sprintf("Resident memory with %s records of %d B keys and %d B values", grouped(int64(o.Records)), o.KeyBytes, o.ValueBytes),
		names: 1,
		head:  []string{"server", "empty", "full", "of it mapped files", "B/record", "ratio"},
	}
	for _, r := range o.Results {
		t.add(r.Target, bytesShort(r.Empty.Total), bytesShort(r.Full.Total), bytesShort(r.Full.File),
			decimals(r.PerRecord, 1), times(r.PerRecord/o.Results[0].PerRecord))
	}
	return []table{t}
}

func (o *memoryOutcome) notes() []string {
	var who []string
	for _, r := range o.Results {
		who = append(who, fmt.Sprintf("%s is %s", r.Target, r.Version))
	}
	return []string{
		strings.Join(who, "; "),
		fmt.Sprintf("the bytes of key and value alone are %d; B/record is what the load added", o.KeyBytes+o.ValueBytes),
	}
}

func (o *memoryOutcome) chart(where string) []byte {
	s := plot.Series{Name: "bytes per record"}
	c := plot.Bars{
		Title:    fmt.Sprintf("Memory per record: %d B key, %d B value", o.KeyBytes, o.ValueBytes),
		Subtitle: where, Unit: "bytes of resident memory per record",
	}
	for _, r := range o.Results {
		c.Rows = append(c.Rows, r.Target)
		s.Values = append(s.Values, r.PerRecord)
	}
	c.Series = []plot.Series{s}
	return c.SVG()
}
