package main

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ostrodb/ostro/tenant"
)

// fnServer are the flags of commands about functions that are installed: where, whose, and as whom.
type fnServer struct {
	target target
	tenant string
	json   bool
	cmd    *cobra.Command
}

func (f *fnServer) add(cmd *cobra.Command) {
	f.cmd = cmd
	cmd.Flags().Bool("help", false, "show this help")
	f.target.add(cmd.Flags(), "auth")
	cmd.Flags().StringVar(&f.target.user, "user", "", "log in as this tenant, with its password")
	cmd.Flags().StringVar(&f.tenant, "tenant", "", "as the operator, for this tenant (default: whoever is logged in)")
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON")
}

// owner is whose functions are meant, for messages.
func (f *fnServer) owner() string {
	switch {
	case f.tenant != "":
		return f.tenant
	case f.target.user != "":
		return f.target.user
	}
	return tenant.Operator
}

// ask sends FUNCTION args, for the tenant that is meant.
func (f *fnServer) ask(args ...string) (string, error) { return f.askAt(f.target, args...) }

func (f *fnServer) askAt(t target, args ...string) (string, error) {
	if f.tenant != "" {
		return askOnce(t, append([]string{"TENANT", "FUNCTION", f.tenant}, args...)...)
	}
	return askOnce(t, append([]string{"FUNCTION"}, args...)...)
}

// askOnce sends one command that answers with a text.
func askOnce(t target, args ...string) (string, error) {
	t.lookUpPassword()
	c := &client{target: t}
	defer c.Close()
	reply, err := c.Do(args...)
	if err == nil {
		err = reply.Err()
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "", fmt.Errorf("no server answers at %s: start one, or say with -h and -p where it is", &t)
	case err != nil:
		return "", errors.New(strings.TrimPrefix(err.Error(), "ERR "))
	}
	return string(reply.Str), nil
}

// nodes are all servers of the cluster that the target is a node of, or only the target.
func (f *fnServer) nodes() []target {
	text, err := askOnce(f.target, "CLUSTER", "NODES")
	if err != nil || f.target.socket != "" {
		return []target{f.target}
	}
	var all []target
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 3 || strings.Contains(fields[2], "fail") || strings.Contains(fields[2], "noaddr") {
			continue
		}
		addr, _, _ := strings.Cut(fields[1], "@")
		host, port, err := net.SplitHostPort(addr)
		number, e := strconv.Atoi(port)
		if err != nil || e != nil {
			continue
		}
		t := f.target
		if t.port = number; host != "" {
			t.host = host
		}
		all = append(all, t)
	}
	if len(all) == 0 {
		return []target{f.target}
	}
	return all
}
