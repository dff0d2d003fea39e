package main

import (
	"github.com/spf13/cobra"

	"github.com/ostrodb/ostro/bench"
)

func newBench() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure: the engine alone, or servers side by side",
		Long: `Measure the engine as a library, or several servers of the Redis protocol in one
run. Ratios within one run travel between machines; absolute figures do not.`,
		Example: `  ostro bench engine
  ostro bench resp --with-redis`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(bench.Commands()...)
	return cmd
}
