package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ostrodb/ostro/server"
)

func newConfig() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print and check the settings of a server",
		Example: `  ostro config default > ostro.yaml      a file to start from
  ostro config check ostro.yaml          all mistakes at once
  ostro config show --config ostro.yaml  what would run, and where each value comes from`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newConfigDefault(), newConfigCheck(), newConfigShow())
	return cmd
}

func newConfigDefault() *cobra.Command {
	return &cobra.Command{
		Use:     "default",
		Short:   "Print a YAML file with every setting, explained, at its default",
		Example: `  ostro config default > ostro.yaml`,
		Args:    takes(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			config := server.Default()
			fmt.Fprint(cmd.OutOrStdout(), defaultFile(&config))
			return nil
		},
	}
}

// defaultFile is a YAML file that changes nothing: each setting is commented
// out below its explanation.
func defaultFile(c *server.Config) string {
	var b strings.Builder
	b.WriteString("# Settings of `ostro server --config FILE`. Remove the # before those to change.\n" +
		"# Each can also be given as an environment variable (OSTRO_PORT) or a flag (--port).\n")
	group := ""
	for _, s := range c.Settings() {
		if s.Group != group {
			group = s.Group
			fmt.Fprintf(&b, "\n## %s\n", group)
		}
		fmt.Fprintf(&b, "\n# %s.\n#%s: %s\n", upperFirst(s.Doc), s.Key, yamlText(s.String()))
	}
	return b.String()
}

func newConfigCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Check a YAML file of settings and report every mistake",
		Long: `Check a YAML file of settings and report every mistake, with its line.
The environment is left out. Exits with 0 if the file is good, 2 if not.`,
		Example: `  ostro config check /etc/ostro.yaml && systemctl restart ostro`,
		Args:    takes(1, 1, "one file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			loaded, err := server.Load(server.Sources{File: args[0]})
			if err != nil {
				return err
			}
			set := 0
			for _, origin := range loaded.Origin {
				if origin != "default" {
					set++
				}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is good: %d settings differ from or repeat the defaults.\n", args[0], set)
			return nil
		},
	}
}

func newConfigShow() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Print the settings that `ostro server` would run with, and their origins",
		Long: `Print the settings that ` + "`ostro server`" + ` would run with, given the same flags,
file and environment, and where each one comes from. Passwords are starred out.`,
		Example: `  ostro config show --config ostro.yaml --port 7000
  ostro config show --json | jq '."memory-limit".value'`,
		Args: takes(0, 0, "no arguments; a file is given with --config"),
	}
	flags := addSettings(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		loaded, err := server.Load(flags.sources(cmd))
		if err != nil {
			return err
		}
		for _, w := range loaded.Warnings {
			fmt.Fprintln(os.Stderr, "warning: "+w)
		}
		if asJSON {
			return printJSON(cmd, settingsJSON(&loaded))
		}
		for _, s := range loaded.Settings() {
			line := fmt.Sprintf("%s: %s", s.Key, yamlText(s.Shown()))
			fmt.Fprintf(cmd.OutOrStdout(), "%-40s # %s\n", line, loaded.Origin[s.Key])
		}
		return nil
	}
	return cmd
}

func settingsJSON(l *server.Loaded) map[string]any {
	out := map[string]any{}
	for _, s := range l.Settings() {
		out[s.Key] = map[string]string{"value": s.Shown(), "origin": l.Origin[s.Key]}
	}
	return out
}

// yamlText quotes a value where YAML would read it differently.
func yamlText(s string) string {
	if s == "" || strings.ContainsAny(s, ":#\"'*&!|>%@`{}[], ") || strings.HasPrefix(s, "-") {
		return fmt.Sprintf("%q", s)
	}
	return s
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
