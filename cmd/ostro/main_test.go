package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ostrodb/ostro/engine/record"
)

// ostro runs a command line in this process and returns what it printed.
func ostro(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root := newRoot()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.Execute()
	return out.String(), err
}

// said is all that a user would read of an error.
func said(err error) string {
	var lines []string
	for line := range sentences(err) {
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func TestWrongUsageExitsWithTwoAndSaysWhatWasMeant(t *testing.T) {
	for line, want := range map[string]string{
		"serv":                                  `ostro has no command "serv"; did you mean "server"?`,
		"frobnicate-all":                        "`ostro --help` lists all",
		"config chek":                           `ostro config has no command "chek"; did you mean "check"?`,
		"server --prot 1":                       "unknown flag --prot; did you mean --port?",
		"server --port many":                    `"many" is not a whole number`,
		"server extra":                          "`ostro server` takes no arguments",
		"check":                                 "`ostro check` takes one data directory",
		"check --quarantine .":                  "--quarantine needs --repair",
		"inspect /no/such":                      "/no/such is not a data directory",
		"config check":                          "takes one file",
		"config check /no/such":                 "/no/such does not exist",
		"config show --port 99999":              "--port must be from 0 to 65535, not 99999",
		"cluster balance sometimes":             `there is no mode "sometimes": use auto, dry-run or off`,
		"cluster balance auto --trigger 0.5":    "would never let the cluster rest",
		"cluster balance auto --trigger nan":    "a trigger of NaN",
		"cluster balance auto --trigger inf":    "a trigger of +Inf",
		"cluster balance auto --min-ops -inf":   "-Inf operations a second are no bounds",
		"cluster balance auto --budget nothing": "--budget",
		"config show --blob-url x:":             "--blob-url must begin with file://",
	} {
		_, err := ostro(t, strings.Fields(line)...)
		if exitCode(err) != exitUsage || !strings.Contains(said(err), want) {
			t.Errorf("ostro %s: exit %d, said %q, want %q", line, exitCode(err), said(err), want)
		}
	}
}

func TestEveryCommandHasHelpWithAnExample(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Name() == "help" || c.Name() == "completion" {
			return
		}
		if c.Short == "" || c.Example == "" {
			t.Errorf("%s lacks a summary or an example", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot())
}

// What stands in backquotes in the text of a flag is shown as the name of its value.
func TestEveryFlagNamesItsValueByOneWord(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if value, text := pflag.UnquoteUsage(f); strings.Contains(value, " ") || strings.Contains(text, "`") {
				t.Errorf("%s: --%s %s %s", c.CommandPath(), f.Name, value, text)
			}
		})
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot())
}

func TestSystemErrorsComeWithAdvice(t *testing.T) {
	listen := func(err error) error { return &net.OpError{Op: "listen", Net: "tcp", Err: err} }
	for _, c := range []struct {
		err  error
		code int
		want string
	}{
		{listen(syscall.EADDRINUSE), exitFailure, "choose another one with --port"},
		{listen(syscall.EACCES), exitFailure, "ports below 1024"},
		{listen(syscall.EADDRNOTAVAIL), exitFailure, "--bind"},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, exitFailure, "ostro server"},
		{fmt.Errorf("write: %w", syscall.ENOSPC), exitFailure, "free some space"},
		{fmt.Errorf("open: %w", &record.CorruptError{Segment: 7}), exitDamaged, "ostro check DIR"},
		{errors.New("plain"), exitFailure, "plain"},
		{silentError{code: 3}, exitDamaged, ""},
	} {
		if exitCode(c.err) != c.code || !strings.Contains(said(c.err), c.want) {
			t.Errorf("%v: exit %d, said %q", c.err, exitCode(c.err), said(c.err))
		}
		if strings.Contains(said(c.err), "\n") {
			t.Errorf("%v: more than one sentence", c.err)
		}
	}
}

func TestVersionIsForPeopleAndMachines(t *testing.T) {
	text, err := ostro(t, "version")
	if err != nil || !strings.HasPrefix(text, "Ostro ") {
		t.Errorf("%q, %v", text, err)
	}
	text, err = ostro(t, "version", "--json")
	if err != nil || !strings.Contains(text, `"version": "`) {
		t.Errorf("%q, %v", text, err)
	}
}
