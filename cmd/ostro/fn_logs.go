package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ostrodb/ostro/tenant/library"
)

func newFnLogs() *cobra.Command {
	l := &fnLogs{}
	follow := false
	cmd := &cobra.Command{
		Use:   "logs NAME",
		Short: "Show what the functions of a module have logged, on all nodes of a cluster",
		Long: `Show what the functions of a module have logged. Each node keeps the last 64 KiB of a
module's lines in memory, and takes 200 lines a second.`,
		Example: `  ostro fn logs tree
  ostro fn logs -f tree --level warning          go on until Ctrl-C
  ostro fn logs tree --tenant shop --json | jq -r .text`,
		Args: takes(1, 1, "the name of a module"),
		RunE: func(_ *cobra.Command, args []string) error { return l.run(args[0], follow) },
	}
	l.add(cmd)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on showing new lines, until Ctrl-C")
	cmd.Flags().StringVar(&l.level, "level", "debug", "least level: debug, info, warning or error")
	cmd.Flags().IntVarP(&l.lines, "lines", "n", 100, "show so many of the lines that are there")
	cmd.Flags().DurationVar(&l.every, "every", 500*time.Millisecond, "with --follow: how often to look")
	return cmd
}

type fnLogs struct {
	fnServer
	level string
	lines int
	every time.Duration
	nodes []*fnLogNode
	quiet map[string]string // by node: what was told of it
}

// fnLogNode is a node, and which of its lines were shown.
type fnLogNode struct {
	target
	after int64
	lost  int64
}

// fnLogLine is a line of a node.
type fnLogLine struct {
	library.Line
	Node string `json:"node"`
}

// nodesEvery is after how many looks a cluster is asked for its nodes again.
const nodesEvery = 10

func (l *fnLogs) run(name string, follow bool) error {
	if _, ok := library.ParseLevel(l.level); !ok || l.lines < 0 || l.every <= 0 {
		return usagef("levels are debug, info, warning and error; --lines is not negative; --every is more than nothing")
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(stop)
	l.quiet = map[string]string{}
	for n := 0; ; n++ {
		if n%nodesEvery == 0 {
			l.findNodes()
		}
		lines, err := l.look(name)
		if err != nil && (n == 0 || !follow) {
			return l.explain(name, err)
		}
		if n == 0 && len(lines) > l.lines {
			lines = lines[len(lines)-l.lines:]
		}
		if err := l.show(lines); err != nil {
			return err
		}
		if !follow || interrupted(stop, l.every) {
			return nil
		}
	}
}

// findNodes keeps what is known of nodes that are still there.
func (l *fnLogs) findNodes() {
	var next []*fnLogNode
	for _, t := range l.fnServer.nodes() {
		i := slices.IndexFunc(l.nodes, func(n *fnLogNode) bool { return n.String() == t.String() })
		if i >= 0 {
			next = append(next, l.nodes[i])
		} else {
			next = append(next, &fnLogNode{target: t})
		}
	}
	l.nodes = next
}

// look returns new lines of all nodes, by time. The error is that of a cluster in which no node answers.
func (l *fnLogs) look(name string) (lines []fnLogLine, err error) {
	var failures []error
	for _, n := range l.nodes {
		found, err := l.lookAt(n, name)
		if err != nil {
			failures = append(failures, err)
			l.tell(n.String(), err.Error())
			continue
		}
		delete(l.quiet, n.String())
		for _, line := range found {
			lines = append(lines, fnLogLine{line, n.String()})
		}
	}
	slices.SortStableFunc(lines, func(a, b fnLogLine) int { return a.At.Compare(b.At) })
	if len(failures) == len(l.nodes) {
		return nil, failures[0]
	}
	return lines, nil
}

// tell says once what is wrong with a node, if others answer.
func (l *fnLogs) tell(node, what string) {
	if len(l.nodes) > 1 && l.quiet[node] != what {
		l.quiet[node] = what
		fmt.Fprintf(l.cmd.ErrOrStderr(), "%s: %s\n", node, what)
	}
}

func (l *fnLogs) lookAt(n *fnLogNode, name string) ([]library.Line, error) {
	text, err := l.askAt(n.target, "LOGS", name, "AFTER", strconv.FormatInt(n.after, 10), "LEVEL", l.level)
	if err != nil {
		return nil, err
	}
	var found library.Lines
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		return nil, errors.New("its answer makes no sense")
	}
	if found.Last < n.after { // It was started again, and counts anew.
		n.after, n.lost = 0, 0
		return l.lookAt(n, name)
	}
	if found.Lost > n.lost {
		fmt.Fprintf(l.cmd.ErrOrStderr(), "%s: %d lines were lost: there were too many\n", n, found.Lost-n.lost)
	}
	n.after, n.lost = found.Last, found.Lost
	return found.Lines, nil
}

func (l *fnLogs) show(lines []fnLogLine) error {
	out := l.cmd.OutOrStdout()
	for _, line := range lines {
		if l.json {
			if err := json.NewEncoder(out).Encode(line); err != nil {
				return err
			}
			continue
		}
		node := ""
		if len(l.nodes) > 1 {
			node = "  " + line.Node
		}
		if _, err := fmt.Fprintf(out, "%s%s  %-7s  %s: %s\n", line.At.Local().Format("2006-01-02 15:04:05.000"), node, line.Level, line.Function, printable(line.Text)); err != nil {
			return err
		}
	}
	return nil
}

// printable keeps what a function wrote from steering the terminal.
func printable(s string) string {
	for _, r := range s {
		if r != '\t' && !strconv.IsPrint(r) {
			q := strconv.Quote(s)
			return q[1 : len(q)-1]
		}
	}
	return s
}
