package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ostrodb/ostro/server"
	"github.com/ostrodb/ostro/tenant/library"
)

func newFnList() *cobra.Command {
	f := &fnServer{}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the modules that are installed on a server, or in its cluster",
		Example: `  ostro fn list
  ostro fn list --tenant shop --json | jq -r '.[].functions[]'`,
		Args: takes(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error { return f.list() },
	}
	f.add(cmd)
	return cmd
}

func (f *fnServer) usageAt(t target) (all []library.Usage, err error) {
	text, err := f.askAt(t, "INFO")
	if err == nil {
		err = json.Unmarshal([]byte(text), &all)
	}
	return all, err
}

func (f *fnServer) list() error {
	all, err := f.usageAt(f.target)
	if err != nil {
		return err
	}
	if f.json {
		entries := make([]library.Entry, len(all))
		for i := range all {
			entries[i] = all[i].Entry
		}
		return printJSON(f.cmd, entries)
	}
	if len(all) == 0 {
		return f.none()
	}
	w := tabwriter.NewWriter(f.cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "MODULE\tVERSION\tCODE\tINSTALLED\tFUNCTIONS")
	for _, u := range all {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\n", u.Name, u.Version, server.Size(u.Bytes).Short(), u.Installed.Local().Format(time.DateTime), strings.Join(u.Functions, ", "))
	}
	return w.Flush()
}

func (f *fnServer) none() error {
	_, err := fmt.Fprintf(f.cmd.OutOrStdout(), "%s has no functions: `ostro fn install FILE` installs some\n", f.owner())
	return err
}

func newFnStats() *cobra.Command {
	f := &fnServer{}
	cmd := &cobra.Command{
		Use:   "stats [NAME]",
		Short: "Show what functions have used since the servers' start, over all nodes of a cluster",
		Example: `  ostro fn stats
  ostro fn stats tree --tenant shop --json`,
		Args: takes(0, 1, "at most one module"),
		RunE: func(_ *cobra.Command, args []string) error { return f.stats(args) },
	}
	f.add(cmd)
	return cmd
}

// fnStats is what a function has used of all nodes.
type fnStats struct {
	Module   string         `json:"module"`
	Function string         `json:"function"`
	Version  int            `json:"version"`
	Usage    library.Counts `json:"usage"`
}

func (f *fnServer) stats(names []string) error {
	sums, err := f.sums(names)
	switch {
	case err != nil:
		return err
	case f.json:
		return printJSON(f.cmd, sums)
	case len(sums) == 0 && len(names) == 1:
		return f.explain(names[0], errors.New("Library not found"))
	case len(sums) == 0:
		return f.none()
	}
	return f.printStats(sums)
}

func (f *fnServer) printStats(sums []fnStats) error {
	w := tabwriter.NewWriter(f.cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "MODULE\tFUNCTION\tCALLS\tFAILURES\tMEAN\tSLOWEST\tFUEL A CALL\tREADS\tWRITES\tRESPONSES")
	for _, s := range sums {
		u, each := s.Usage, max(s.Usage.Calls, 1)
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\t%d\t%d\t%d\t%s\n", s.Module, s.Function, u.Calls, u.Failures,
			(u.Time / time.Duration(each)).Round(10*time.Nanosecond), u.Slowest.Round(time.Microsecond), u.Fuel/each, u.Reads, u.Writes, server.Size(u.Bytes).Short())
	}
	return w.Flush()
}

// fnInstalled is an installed module, as one node tells, and what it has used of all.
type fnInstalled struct {
	library.Entry
	Tenant string    `json:"tenant"`
	Usage  []fnStats `json:"usage"`
}

// describe tells of an installed module.
func (f *fnServer) describe(name string) error {
	all, err := f.usageAt(f.target)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(u library.Usage) bool { return u.Name == name })
	if i < 0 {
		return fmt.Errorf("%w, and there is no file of that name", f.explain(name, errors.New("Library not found")))
	}
	m := fnInstalled{Entry: all[i].Entry, Tenant: all[i].Tenant}
	if m.Usage, err = f.sums([]string{name}); err != nil {
		return err
	}
	if f.json {
		return printJSON(f.cmd, m)
	}
	out := f.cmd.OutOrStdout()
	fmt.Fprintf(out, "%-12s %s of %s, version %d, installed %s\n", "module", m.Name, m.Tenant, m.Version, m.Installed.Local().Format(time.DateTime))
	fmt.Fprintf(out, "%-12s %s, SHA-256 %s\n", "code", server.Size(m.Bytes).Short(), m.Sum)
	fmt.Fprintf(out, "%-12s %s\n\n", "functions", strings.Join(m.Functions, ", "))
	return f.printStats(m.Usage)
}

// sums adds up what all nodes say. A node that does not answer is told of, and left out.
func (f *fnServer) sums(names []string) ([]fnStats, error) {
	sums := map[[2]string]fnStats{}
	var failures []error
	nodes := f.nodes()
	for _, n := range nodes {
		all, err := f.usageAt(n)
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", &n, err))
			continue
		}
		for _, u := range all {
			if len(names) == 1 && u.Name != names[0] {
				continue
			}
			for name, counts := range u.Of {
				s := sums[[2]string{u.Name, name}]
				s.Module, s.Function, s.Version = u.Name, name, max(s.Version, u.Version)
				s.Usage.Add(&counts)
				sums[[2]string{u.Name, name}] = s
			}
		}
	}
	if len(failures) == len(nodes) {
		return nil, errors.Join(failures...)
	}
	for _, err := range failures {
		fmt.Fprintln(f.cmd.ErrOrStderr(), "not counted:", err)
	}
	list := slices.Collect(maps.Values(sums))
	slices.SortFunc(list, func(a, b fnStats) int { return strings.Compare(a.Module+" "+a.Function, b.Module+" "+b.Function) })
	return list, nil
}
