package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ostrodb/ostro/server"
	"github.com/ostrodb/ostro/tenant/library"
)

func newFnInstall() *cobra.Command {
	f := &fnServer{}
	name, replace := "", true
	cmd := &cobra.Command{
		Use:   "install FILE",
		Short: "Install a module on a server, or in its cluster, so that its functions can be called",
		Long: `Install a module on a server, or in the cluster that the server is a node of. The module
is checked and compiled first. If there is one of that name already, the new one takes its
place at one moment, as its next version; calls that run end with the one they began with.`,
		Example: `  ostro fn install tree.wasm                               the operator's own
  ostro fn install tree.wasm --tenant shop                 a tenant's, as the operator
  ostro fn install tree.wasm --user shop                   a tenant's, as the tenant; REDISCLI_AUTH is its password
  ostro fn install build/out.wasm --name tree --replace=false
  redis-cli FCALL tree_get 1 root k                        call a function of it`,
		Args: takes(1, 1, "one module"),
		RunE: func(_ *cobra.Command, args []string) error { return f.install(args[0], name, replace) },
	}
	f.add(cmd)
	cmd.Flags().StringVar(&name, "name", "", "what the module is called (default: the file's name)")
	cmd.Flags().BoolVar(&replace, "replace", true, "take the place of a module of that name; --replace=false refuses to")
	return cmd
}

// moduleName is a name for what is in a file.
func moduleName(path string) string {
	base := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	return strings.Map(func(r rune) rune {
		if r < 0x80 && library.CheckName(string(r)) == nil {
			return r
		}
		return '_'
	}, base)
}

func (f *fnServer) install(path, name string, replace bool) error {
	code, err := readModule(path, library.DefaultLimits().Extension)
	if err != nil {
		return err
	}
	if name == "" {
		name = moduleName(path)
	}
	if err := library.CheckName(name); err != nil {
		return usagef("%s: give it one with --name", err)
	}
	args := []string{"LOAD"}
	if replace {
		args = append(args, "REPLACE")
	}
	if _, err := f.ask(append(args, "#!wasm name="+name+"\n"+string(code))...); err != nil {
		return err
	}
	text, err := f.ask("INFO", name)
	if err != nil {
		return err
	}
	var all []library.Usage
	if err := json.Unmarshal([]byte(text), &all); err != nil || len(all) != 1 {
		return fmt.Errorf("the server's answer makes no sense: %.200q", text)
	}
	if f.json {
		return printJSON(f.cmd, all[0].Entry)
	}
	out, e := f.cmd.OutOrStdout(), all[0].Entry
	if e.Version > 1 {
		fmt.Fprintf(out, "module %s of %s is replaced: version %d serves from now on\n", e.Name, f.owner(), e.Version)
	} else {
		fmt.Fprintf(out, "module %s of %s is installed\n", e.Name, f.owner())
	}
	_, err = fmt.Fprintf(out, "%s of code; functions: %s\n", server.Size(e.Bytes).Short(), strings.Join(e.Functions, ", "))
	return err
}

func newFnDelete() *cobra.Command {
	f := &fnServer{}
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a module and its functions from a server, or from its cluster",
		Example: `  ostro fn delete tree
  ostro fn delete tree --tenant shop`,
		Args: takes(1, 1, "the name of a module"),
		RunE: func(_ *cobra.Command, args []string) error {
			if _, err := f.ask("DELETE", args[0]); err != nil {
				return f.explain(args[0], err)
			}
			if f.json {
				return printJSON(f.cmd, map[string]string{"name": args[0]})
			}
			_, err := fmt.Fprintf(f.cmd.OutOrStdout(), "module %s of %s is gone\n", args[0], f.owner())
			return err
		},
	}
	f.add(cmd)
	return cmd
}

// explain says what to do about a module that is not there.
func (f *fnServer) explain(name string, err error) error {
	if err.Error() == "Library not found" {
		return fmt.Errorf("%s has no module %q: `ostro fn list` names those that are there", f.owner(), name)
	}
	return err
}
