package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ostrodb/ostro/tenant/extension"
	"github.com/ostrodb/ostro/tenant/library"
)

func newFn() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fn",
		Short: "Write, try, install and watch functions: WebAssembly modules that work next to the data",
		Long: `Functions are WebAssembly modules that read and write keys where the data is.

new, describe, check, run and bench work on a module in a file, with data from a file, without a
server. install, list, delete, stats and logs are about what is installed on a server, or in the
cluster that it is a node of; they log in with REDISCLI_AUTH, as the operator or as a tenant.

docs/functions.md is the guide to writing them; docs/function-abi.md describes what a
module exports and may import.`,
		Example: `  ostro fn new greeter --lang rust                                 begin one: rust, c, as or go
  ostro fn describe tree.wasm                                      what is in a module, and what it needs
  ostro fn run tree.wasm --fn walk --key root --data tree.jsonl    call a function
  ostro fn bench tree.wasm --fn walk --key root --data tree.jsonl  call it many times
  ostro fn check *.wasm                                            would a server take them?
  ostro fn install tree.wasm --tenant shop                         install it
  ostro fn logs -f tree --tenant shop                              what it logs`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newFnNew(), newFnRun(), newFnBench(), newFnDescribe(), newFnCheck(),
		newFnInstall(), newFnList(), newFnDelete(), newFnStats(), newFnLogs())
	return cmd
}

// readModule reads a module's file, but not one that no limit allows.
func readModule(path string, limits extension.Limits) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, usagef("%s does not exist", path)
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, usagef("%s is a directory; name a module, a file that ends in .wasm", path)
	case info.Size() > int64(limits.Module.ModuleBytes):
		return nil, fmt.Errorf("%s has %d bytes, and a module may have %d", path, info.Size(), limits.Module.ModuleBytes)
	}
	return os.ReadFile(path)
}

func newFnDescribe() *cobra.Command {
	f := &fnServer{}
	cmd := &cobra.Command{
		Use:   "describe FILE|NAME",
		Short: "Show a module's functions, imports and limits, or why it would be refused; of an installed one versions and usage",
		Long: `Show what is in a module. A file is looked at without a server: its functions, imports and
limits, or why it would be refused. Anything else is the name of a module that is installed on
a server, or in its cluster: its version, and what its functions have used since the start.`,
		Example: `  ostro fn describe tree.wasm
  ostro fn describe tree.wasm --json | jq -r '.functions[]'
  ostro fn describe tree --tenant shop                           as it is installed`,
		Args: takes(1, 1, "one module"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := os.Stat(args[0]); err != nil && library.CheckName(args[0]) == nil {
				return f.describe(args[0])
			}
			limits := extension.DefaultLimits()
			code, err := readModule(args[0], limits)
			if err != nil {
				return err
			}
			about, err := extension.Describe(code, limits)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			if f.json {
				return printJSON(cmd, about)
			}
			printModule(cmd, about, limits)
			return nil
		},
	}
	f.add(cmd)
	return cmd
}

// isMeant tells that an export which is no function of the module's is used all the same: see docs/function-abi.md.
func isMeant(export string) bool { return export == "ostro_first" }

func printModule(cmd *cobra.Command, a *extension.Description, limits extension.Limits) {
	out := cmd.OutOrStdout()
	m := a.Metering
	list := func(what string, all []string) {
		if len(all) == 0 {
			all = []string{"none"}
		}
		fmt.Fprintf(out, "%-12s %s\n", what, strings.Join(all, ", "))
	}
	list("functions", a.Functions)
	list("imports", a.Imports)
	if ignored := slices.DeleteFunc(slices.Clone(a.Exports), isMeant); len(ignored) > 0 {
		list("ignored", ignored)
	}
	fmt.Fprintf(out, "%-12s %d KiB at first, up to %d KiB\n", "memory", a.MemoryPages*64, limits.Module.MemoryPages*64)
	fmt.Fprintf(out, "%-12s %d bytes, %d with metering; %d functions, %d of them recursive\n", "code", m.BytesBefore, m.BytesAfter, m.Functions, m.Recursive)
	fmt.Fprintf(out, "%-12s %d places where fuel is charged; %d functions are paid for by their callers\n", "metering", m.Points, m.Unmetered)
	if a.Initializes {
		fmt.Fprintf(out, "%-12s by _initialize, once\n", "starts")
	}
	if !m.Restorable {
		fmt.Fprintf(out, "%-12s cannot be: the module changes its tables\n", "fresh calls")
	}
}

func newFnCheck() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check MODULE...",
		Short: "Check, compile and initialize modules as a server would",
		Example: `  ostro fn check tree.wasm
  ostro fn check *.wasm --json | jq -r '.[] | select(.error) | .module'`,
		Args: takes(1, 1<<20, "one module or more"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var all []fnChecked
			bad := 0
			for _, path := range args {
				c := fnChecked{Module: path}
				if err := checkModule(cmd, path); err != nil {
					c.Error = err.Error()
					bad++
				}
				all = append(all, c)
			}
			if err := printChecked(cmd, all, asJSON); err != nil {
				return err
			}
			if bad > 0 {
				return silentError{exitFailure}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// fnChecked is the outcome of one module.
type fnChecked struct {
	Module string `json:"module"`
	Error  string `json:"error,omitempty"`
}

func printChecked(cmd *cobra.Command, all []fnChecked, asJSON bool) error {
	if asJSON {
		return printJSON(cmd, all)
	}
	for _, c := range all {
		if c.Error != "" {
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", c.Module, c.Error)
		} else {
			fmt.Fprintf(cmd.OutOrStdout(), "%s: fine\n", c.Module)
		}
	}
	return nil
}

func checkModule(cmd *cobra.Command, path string) error {
	l := fnLocal{}
	if err := l.open(cmd, path); err != nil {
		return err
	}
	defer l.close()
	return l.pool.Warm(1)
}
