package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ostrodb/ostro/sdk"
	"github.com/ostrodb/ostro/server"
)

func newFnNew() *cobra.Command {
	var lang, dir string
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Begin a function: a folder that builds, with the SDK in it",
		Long: `Writes a folder with a small function, the SDK of its language, a Makefile and a
README. The language's own compiler is all that is needed to build it.

Languages: rust and c make modules of a few kilobytes; so does as (AssemblyScript),
whose compiler comes from npm; go brings its runtime along, 2 MB of it.`,
		Example: `  ostro fn new greeter --lang rust
  ostro fn new greeter --lang c --dir ~/functions/greeter`,
		Args: takes(1, 1, "a name"),
		RunE: func(cmd *cobra.Command, args []string) error { return fnNew(cmd, args[0], lang, dir) },
	}
	cmd.Flags().StringVar(&lang, "lang", "rust", "language: "+strings.Join(languages(), ", "))
	cmd.Flags().StringVar(&dir, "dir", "", "folder to write to, empty or not there yet (default ./NAME)")
	return cmd
}

func languages() []string {
	var names []string
	for _, l := range sdk.Languages() {
		names = append(names, l.Name)
	}
	return names
}

func fnNew(cmd *cobra.Command, name, lang, dir string) error {
	l, known := sdk.Find(lang)
	if !known {
		if near := server.Near(lang, languages()); near != "" {
			return usagef("there is no SDK for %q; did you mean %q?", lang, near)
		}
		return usagef("there is no SDK for %q; languages are %s", lang, strings.Join(languages(), ", "))
	}
	if dir == "" {
		dir = name
	}
	written, err := sdk.New(dir, name, l)
	if err != nil {
		return usagef("%s", err)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), `%s has a function in %s, %d files. The functions are in %s.

Build it:  cd %s
           %s
           make
Try it:    ostro fn run %s.wasm --fn hello --args world
`, dir, l.Title, len(written), strings.ReplaceAll(l.Source, "NAME", name), dir, l.Install, name)
	return err
}
