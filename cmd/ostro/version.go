package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ostrodb/ostro/server"
)

func newVersion() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Tell which program this is",
		Example: `  ostro version
  ostro version --json | jq -r .version`,
		Args: takes(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				return printJSON(cmd, server.BuildInfo())
			}
			fmt.Fprintln(cmd.OutOrStdout(), server.BuildInfo())
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// printJSON writes v for machines, indented so that people can read it too.
func printJSON(cmd *cobra.Command, v any) error {
	out := json.NewEncoder(cmd.OutOrStdout())
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	return out.Encode(v)
}
