package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/ostrodb/ostro/server"
	"github.com/ostrodb/ostro/tenant"
)

// tenantRate is what a tenant did in a while, by the second.
type tenantRate struct {
	Name        string `json:"name"`
	Operations  int64  `json:"operationsPerSecond"`
	Refused     int64  `json:"refusedPerSecond"`
	BytesIn     int64  `json:"bytesInPerSecond"`
	BytesOut    int64  `json:"bytesOutPerSecond"`
	Bytes       int64  `json:"bytes"`
	Connections int64  `json:"connections"`
	Waiting     int64  `json:"waiting"`

	FunctionCores  float64 `json:"functionCores"` // that its functions used
	FunctionMemory int64   `json:"functionMemory"`
}

func newTenantTop() *cobra.Command {
	f := &tenantFlags{}
	every, times, rows := time.Second, 0, 20
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show who uses the server most, until Ctrl-C",
		Example: `  ostro tenant top
  ostro tenant top --times 1 --json         for machines`,
		Args: takes(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.top(every, times, rows) },
	}
	f.add(cmd)
	cmd.Flags().DurationVar(&every, "every", every, "how often to look")
	cmd.Flags().IntVar(&times, "times", times, "look so many times; 0: until Ctrl-C")
	cmd.Flags().IntVar(&rows, "rows", rows, "show so many tenants")
	return cmd
}

func (f *tenantFlags) top(every time.Duration, times, rows int) error {
	if every <= 0 || times < 0 || rows <= 0 {
		return usagef("--every and --rows are more than nothing, and --times is not negative")
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(stop)
	before, _, err := f.usage()
	if err != nil {
		return err
	}
	began := time.Now()
	for n := 0; times == 0 || n < times; n++ {
		if interrupted(stop, every) {
			return nil
		}
		after, _, err := f.usage()
		if err != nil {
			return err
		}
		rates := ratesOf(before, after, time.Since(began))
		before, began = after, time.Now()
		if err := f.showTop(rates[:min(rows, len(rates))]); err != nil {
			return err
		}
	}
	return nil
}

func ratesOf(before, after []tenant.Usage, span time.Duration) []tenantRate {
	was := map[string]tenant.Usage{}
	for _, u := range before {
		was[u.Name] = u
	}
	rate := func(n int64) int64 { return int64(float64(max(n, 0)) / span.Seconds()) }
	var all []tenantRate
	for _, u := range after {
		w := was[u.Name]
		all = append(all, tenantRate{
			Name: u.Name, Operations: rate(u.Operations - w.Operations), Refused: rate(u.Refused - w.Refused),
			BytesIn: rate(u.BytesIn - w.BytesIn), BytesOut: rate(u.BytesOut - w.BytesOut),
			Bytes: u.Bytes, Connections: u.Connections, Waiting: u.Waiting,
			FunctionCores: float64(max(u.FunctionNanos-w.FunctionNanos, 0)) / float64(span), FunctionMemory: u.FunctionMemory,
		})
	}
	slices.SortFunc(all, func(a, b tenantRate) int {
		return cmp.Or(cmp.Compare(b.Operations, a.Operations), cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name))
	})
	return all
}

func (f *tenantFlags) showTop(rates []tenantRate) error {
	out := f.cmd.OutOrStdout()
	if f.json {
		return json.NewEncoder(out).Encode(rates)
	}
	if term.IsTerminal(int(os.Stdout.Fd())) {
		fmt.Fprint(out, "\x1b[H\x1b[2J")
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "OPS/S\tREFUSED/S\tIN/S\tOUT/S\tHOLDS\tCONNECTIONS\tWAITING\tCORES\tFUNCTIONS HOLD\tNAME\t")
	for _, r := range rates {
		fmt.Fprintf(w, "%d\t%d\t%s\t%s\t%s\t%d\t%d\t%.2f\t%s\t%s\t\n", r.Operations, r.Refused, server.Size(r.BytesIn).Short(), server.Size(r.BytesOut).Short(),
			server.Size(r.Bytes).Short(), r.Connections, r.Waiting, r.FunctionCores, server.Size(r.FunctionMemory).Short(), r.Name)
	}
	return w.Flush()
}
