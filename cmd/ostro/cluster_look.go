package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/ostrodb/ostro/cluster/meta"
)

type statusFlags struct {
	which      whichCluster
	secretFile string
	watch      bool
	json       bool
}

func newClusterStatus() *cobra.Command {
	f := &statusFlags{}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show nodes, ranges, copies, and what is being recovered",
		Long: `Show nodes, what each owns, where its copies are, recoveries with their progress,
and what the cluster waits for.

Health is one of
  ok          every key is served and has all its copies
  degraded    every key is served, some with fewer copies than wanted
  recovering  others are taking over what a dead node had
  waiting     a dead node cannot be replaced yet; the reason is told
  forming     nobody owns any key yet

It exits with 0 if every key is served, else with 1.`,
		Example: `  ostro cluster status                                  of the cluster in ./ostro-cluster
  ostro cluster status --watch
  ostro cluster status --cluster etcd://a,b,c --json`,
		Args: takes(0, 0, "no arguments; the cluster is given with --cluster or --dir"),
		RunE: func(*cobra.Command, []string) error { return runClusterStatus(f) },
	}
	cmd.Flags().SortFlags = false
	f.which.add(cmd)
	cmd.Flags().StringVar(&f.secretFile, "secret-file", "", "file with the secret that the nodes share, if it is not kept in etcd")
	cmd.Flags().BoolVarP(&f.watch, "watch", "w", false, "go on showing it, until Ctrl-C")
	cmd.Flags().BoolVar(&f.json, "json", false, "as JSON; with --watch an object a line for every change")
	return cmd
}

func runClusterStatus(f *statusFlags) error {
	ctx, cancel := untilSignal()
	defer cancel()
	store, dir, err := f.which.open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	url, _, _ := f.which.find()
	if f.watch {
		return f.follow(ctx, store, url, dir)
	}
	r, err := f.read(ctx, store, url, dir)
	if err != nil {
		return err
	}
	f.show(os.Stdout, r)
	if !r.served() {
		return silentError{exitFailure}
	}
	return nil
}

func (f *statusFlags) show(out io.Writer, r clusterReport) {
	switch {
	case !f.json:
		r.print(out)
	case f.watch:
		text, _ := json.Marshal(r) // It always marshals.
		fmt.Fprintf(out, "%s\n", text)
	default:
		text, _ := json.MarshalIndent(r, "", "  ")
		fmt.Fprintf(out, "%s\n", text)
	}
}

// follow shows every change, and on a terminal the passing of time.
func (f *statusFlags) follow(ctx context.Context, store *meta.Store, url, dir string) error {
	cache, err := store.Follow(ctx)
	if err != nil {
		return err
	}
	defer cache.Close()
	screen := term.IsTerminal(int(os.Stdout.Fd())) && !f.json
	for {
		changed := cache.Changed()
		if err := f.draw(ctx, store, url, dir, screen); err != nil {
			return err
		}
		var tick <-chan time.Time
		if screen {
			tick = time.After(time.Second)
		}
		select {
		case <-changed:
		case <-tick:
		case <-ctx.Done():
			return nil
		}
	}
}

// draw shows the status once, at one go.
func (f *statusFlags) draw(ctx context.Context, store *meta.Store, url, dir string, screen bool) error {
	r, err := f.read(ctx, store, url, dir)
	var page bytes.Buffer
	if screen {
		page.WriteString("\x1b[H\x1b[2J")
	}
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil: // It may come back.
		fmt.Fprintln(&page, err)
	default:
		f.show(&page, r)
	}
	if !f.json {
		page.WriteString("\n")
	}
	_, err = os.Stdout.Write(page.Bytes())
	return err
}
