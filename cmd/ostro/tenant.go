package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ostrodb/ostro/server"
	"github.com/ostrodb/ostro/tenant"
)

func newTenant() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tenant",
		Short: "Make, change, list and delete those who share a server",
		Long: `Tenants share a server without seeing each other. Each has a name, a password,
databases of its own and limits. A Redis client that sends AUTH NAME PASSWORD, or a native
client with both in its address, is the tenant from then on.

These commands are the operator's: they log in with the server's requirepass, which is
needed before there can be tenants.`,
		Example: `  export REDISCLI_AUTH=...            the operator's password
  ostro tenant create shop --bytes 2GB --operations 50000
  ostro tenant top`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTenantCreate(), newTenantSet(), newTenantDelete(), newTenantList(), newTenantTop())
	return cmd
}

// tenantFlags are those of all commands about tenants.
type tenantFlags struct {
	target target
	json   bool
	cmd    *cobra.Command
}

func (f *tenantFlags) add(cmd *cobra.Command) {
	f.cmd = cmd
	cmd.Flags().Bool("help", false, "show this help")
	f.target.add(cmd.Flags(), "auth")
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON")
}

// ask sends one command as the operator.
func (f *tenantFlags) ask(args ...string) (string, error) {
	return askOnce(f.target, args...)
}

// grantFlags are what a tenant may be given.
type grantFlags struct {
	password                          string
	databases                         int
	bytes                             string
	operations, connections, inFlight int64
	functionCPU, functionMemory       string
}

func (w *grantFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&w.password, "password", "", "its password; - reads it from standard input (default: one that nobody guesses)")
	f.StringVar(&w.bytes, "bytes", "", "most that its records may take on a node, such as 2GB; 0: no limit")
	f.Int64Var(&w.operations, "operations", 0, "most operations a second on a node; 0: no limit")
	f.Int64Var(&w.connections, "connections", 0, "most connections to a node at a time; 0: no limit")
	f.Int64Var(&w.inFlight, "inflight", 0, "most operations on a node that wait for a disk or another node; 0: no limit")
	f.StringVar(&w.functionCPU, "function-cpu", "", "cores that its functions may use on a node, such as 0.5; 0: no limit")
	f.StringVar(&w.functionMemory, "function-memory", "", "most memory that its functions' instances may have on a node, such as 64MB; 0: no limit")
}

// args are what was given, as TENANT takes it.
func (w *grantFlags) args(cmd *cobra.Command) (args []string, err error) {
	given := func(name string) bool { return cmd.Flags().Changed(name) }
	if given("password") {
		if w.password == "-" {
			if w.password, err = readLine(cmd.InOrStdin()); err != nil {
				return nil, fmt.Errorf("read the password: %w", err)
			}
		}
		args = append(args, "password", w.password)
	}
	if given("databases") {
		args = append(args, "databases", strconv.Itoa(w.databases))
	}
	for name, text := range map[string]string{"bytes": w.bytes, "function-memory": w.functionMemory} {
		if !given(name) {
			continue
		}
		n, err := server.ParseSize(text)
		if err != nil {
			return nil, usagef("--%s: %s", name, err)
		}
		args = append(args, name, strconv.FormatInt(int64(n), 10))
	}
	if given("function-cpu") {
		if _, err := tenant.ParseCores(w.functionCPU); err != nil {
			return nil, usagef("--function-cpu: %s", err)
		}
		args = append(args, "function-cpu", w.functionCPU)
	}
	for name, n := range map[string]int64{"operations": w.operations, "connections": w.connections, "inflight": w.inFlight} {
		if given(name) {
			args = append(args, name, strconv.FormatInt(n, 10))
		}
	}
	return args, nil
}

func readLine(in io.Reader) (string, error) {
	b, err := io.ReadAll(io.LimitReader(in, 4096))
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSuffix(line, "\r"), err
}

func newTenantCreate() *cobra.Command {
	f, w := &tenantFlags{}, &grantFlags{}
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a tenant",
		Example: `  ostro tenant create shop                                 prints the password that it made
  ostro tenant create shop --password - < secret.txt       takes one from a file
  ostro tenant create shop --bytes 2GB --operations 50000 --connections 200`,
		Args: takes(1, 1, "the name of the tenant"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.create(args[0], w) },
	}
	f.add(cmd)
	w.add(cmd)
	cmd.Flags().IntVar(&w.databases, "databases", 1, fmt.Sprintf("databases that it can SELECT, at most %d; a cluster knows only the first", tenant.MaxDatabases))
	return cmd
}

func (f *tenantFlags) create(name string, w *grantFlags) error {
	args, err := w.args(f.cmd)
	if err != nil {
		return err
	}
	made := ""
	if !f.cmd.Flags().Changed("password") {
		made = tenant.NewPassword()
		args = append(args, "password", made)
	}
	if _, err := f.ask(append([]string{"TENANT", "CREATE", name}, args...)...); err != nil {
		return err
	}
	out := f.cmd.OutOrStdout()
	switch {
	case f.json:
		return json.NewEncoder(out).Encode(struct {
			Name     string `json:"name"`
			Password string `json:"password,omitempty"` // if it was made here
		}{name, made})
	case made != "":
		fmt.Fprintf(out, "tenant %s is there; its password, which is shown this once: %s\n", name, made)
		fmt.Fprintf(out, "try it: ostro cli --user %s -p %d PING\n", name, f.target.port)
	default:
		fmt.Fprintf(out, "tenant %s is there\n", name)
	}
	return nil
}

func newTenantSet() *cobra.Command {
	f, w := &tenantFlags{}, &grantFlags{}
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Change the limits or the password of a tenant; connections stay",
		Example: `  ostro tenant set shop --operations 100000
  ostro tenant set shop --bytes 0                          no limit any more`,
		Args: takes(1, 1, "the name of the tenant"),
		RunE: func(cmd *cobra.Command, args []string) error {
			wish, err := w.args(cmd)
			if err != nil {
				return err
			}
			if len(wish) == 0 {
				return usagef("nothing to change is given: --password, --bytes, --operations, --connections, --inflight, --function-cpu or --function-memory")
			}
			return f.change(args[0], "is changed", append([]string{"TENANT", "SET", args[0]}, wish...)...)
		},
	}
	f.add(cmd)
	w.add(cmd)
	return cmd
}

func newTenantDelete() *cobra.Command {
	f := &tenantFlags{}
	sure := false
	cmd := &cobra.Command{
		Use:     "delete NAME --yes",
		Short:   "Delete a tenant and all its data",
		Example: `  ostro tenant delete shop --yes`,
		Args:    takes(1, 1, "the name of the tenant"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !sure {
				return usagef("this deletes all data of tenant %s: say so with --yes", args[0])
			}
			return f.change(args[0], "is gone, with all its data", "TENANT", "DELETE", args[0])
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&sure, "yes", false, "delete it, and all that it has")
	return cmd
}

func (f *tenantFlags) change(name, what string, args ...string) error {
	if _, err := f.ask(args...); err != nil {
		return err
	}
	if f.json {
		return json.NewEncoder(f.cmd.OutOrStdout()).Encode(map[string]string{"name": name})
	}
	_, err := fmt.Fprintf(f.cmd.OutOrStdout(), "tenant %s %s\n", name, what)
	return err
}

func newTenantList() *cobra.Command {
	f := &tenantFlags{}
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List tenants with their limits and what they have",
		Example: `  ostro tenant list --json`,
		Args:    takes(0, 0, "no arguments"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.list() },
	}
	f.add(cmd)
	return cmd
}

func (f *tenantFlags) usage() (all []tenant.Usage, text string, err error) {
	text, err = f.ask("TENANT", "LIST")
	if err != nil {
		return nil, "", err
	}
	err = json.Unmarshal([]byte(text), &all)
	return all, text, err
}

func (f *tenantFlags) list() error {
	all, text, err := f.usage()
	out := f.cmd.OutOrStdout()
	switch {
	case err != nil:
		return err
	case f.json:
		_, err := fmt.Fprintln(out, text)
		return err
	case len(all) == 0:
		_, err := fmt.Fprintln(out, "there are no tenants: `ostro tenant create NAME` makes one")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tKEYS\tBYTES\tOF\tCONNECTIONS\tOF\tOPERATIONS/S AT MOST\tWAITING AT MOST\tFUNCTION CPU AT MOST\tFUNCTION MEMORY\tOF")
	for _, u := range all {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", u.Name, u.Keys, server.Size(u.Bytes).Short(), limitBytes(u.Limits.Bytes),
			u.Connections, limit(u.Limits.Connections), limit(u.Limits.Operations), limit(u.Limits.InFlight),
			limitCores(u.Limits.Cores()), server.Size(u.FunctionMemory).Short(), limitBytes(u.Limits.FunctionMemory))
	}
	return w.Flush()
}

func limit(n int64) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatInt(n, 10)
}

func limitCores(n float64) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatFloat(n, 'g', -1, 64)
}

func limitBytes(n int64) string {
	if n == 0 {
		return "-"
	}
	return server.Size(n).Short()
}

// interrupted is closed by Ctrl-C.
func interrupted(stop <-chan os.Signal, every time.Duration) bool {
	select {
	case <-stop:
		return true
	case <-time.After(every):
		return false
	}
}
