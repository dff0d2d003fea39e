package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ostrodb/ostro/server"
)

// newRoot builds the whole command tree, afresh for every test.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "ostro",
		Short: "A Redis-compatible key-value store for data larger than memory",
		Long: `Ostro keeps data in memory first and on disk when memory is full, and speaks
the Redis protocol: redis-cli and every Redis client library work unmodified.

Exit codes: 0 success, 1 failure, 2 wrong flags or configuration, 3 damaged data.`,
		Example: `  ostro server                     serve on port 6379, data in ./ostro-data
  ostro cli SET greeting hello     run one command
  ostro check ./ostro-data         verify a data directory`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(
		newServer(), newCluster(), newMigrate(), newConfig(), newNIC(), newReplica(),
		newFn(),
		newCLI(),
		newInspect(), newCheck(),
		newBench(), newVersion(),
	)
	root.SetFlagErrorFunc(flagError)
	return root
}

// noCommand refuses a word that should have been a subcommand.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	if near := server.Near(args[0], names); near != "" {
		return usagef("%s has no command %q; did you mean %q?", cmd.CommandPath(), args[0], near)
	}
	return usagef("%s has no command %q; `%s --help` lists all", cmd.CommandPath(), args[0], cmd.CommandPath())
}

// flagError names the flag that was probably meant.
func flagError(cmd *cobra.Command, err error) error {
	unknown, found := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !found {
		return usagef("%s; `%s --help` tells more", err, cmd.CommandPath())
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := server.Near(unknown, names); near != "" {
		return usagef("unknown flag --%s; did you mean --%s?", unknown, near)
	}
	return usagef("unknown flag --%s; `%s --help` lists all", unknown, cmd.CommandPath())
}

// takes checks the number of arguments and says in one sentence what belongs there.
func takes(low, high int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= low && len(args) <= high {
			return nil
		}
		return usagef("`%s` takes %s; `%s --help` shows examples", cmd.CommandPath(), what, cmd.CommandPath())
	}
}

// usageError is a mistake in flags, arguments or configuration.
type usageError struct{ error }

func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}
