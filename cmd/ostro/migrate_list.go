package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/server"
)

// migrationFlags are those of commands about migrations that there are.
type migrationFlags struct {
	which  whichCluster
	json   bool
	watch  bool
	detach bool
	cmd    *cobra.Command // whose output is ours
}

func newMigrateList() *cobra.Command {
	f := &migrationFlags{}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List migrations: those under way and the last ones",
		Example: `  ostro migrate list
  ostro migrate list --json --cluster etcd://a,b,c`,
		Args: takes(0, 0, "no arguments; the cluster is given with --cluster or --dir"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.cmd = cmd
			return f.with(func(_ context.Context, _ *meta.Store, s *meta.Snapshot) error { return f.list(s) })
		},
	}
	f.add(cmd)
	return cmd
}

func newMigrateStatus() *cobra.Command {
	f := &migrationFlags{}
	cmd := &cobra.Command{
		Use:   "status NUMBER",
		Short: "Show one migration",
		Example: `  ostro migrate status 3
  ostro migrate status 3 --watch        wait until it has ended`,
		Args: takes(1, 1, "the number of a migration, as `ostro migrate list` shows it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.cmd = cmd
			id, err := migrationNumber(args[0])
			if err != nil {
				return err
			}
			return f.with(func(ctx context.Context, store *meta.Store, s *meta.Snapshot) error {
				return f.status(ctx, store, s, id)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVarP(&f.watch, "watch", "w", false, "go on showing it until it has ended, or Ctrl-C")
	return cmd
}

func newMigrateCancel() *cobra.Command {
	f := &migrationFlags{}
	cmd := &cobra.Command{
		Use:   "cancel NUMBER",
		Short: "End a migration: the source gets back what it had, and what the target wrote",
		Long: `End a migration. What has moved goes back to the source, together with all that the
target has written since; clients wait for a moment. One that has not begun just ends.`,
		Example: `  ostro migrate cancel 3`,
		Args:    takes(1, 1, "the number of a migration, as `ostro migrate list` shows it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.cmd = cmd
			id, err := migrationNumber(args[0])
			if err != nil {
				return err
			}
			return f.with(func(ctx context.Context, store *meta.Store, _ *meta.Snapshot) error { return f.cancel(ctx, store, id) })
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&f.detach, "detach", false, "do not wait until it has ended")
	return cmd
}

func (f *migrationFlags) add(cmd *cobra.Command) {
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&f.json, "json", false, "as JSON")
	f.which.add(cmd)
}

func migrationNumber(text string) (uint64, error) {
	id, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, usagef("%q is no number of a migration: `ostro migrate list` shows them", text)
	}
	return id, nil
}

// with runs a command on the cluster's metadata.
func (f *migrationFlags) with(run func(context.Context, *meta.Store, *meta.Snapshot) error) error {
	ctx, cancel := untilSignal()
	defer cancel()
	store, _, err := f.which.open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	s, err := store.Read(ctx)
	if err != nil {
		return err
	}
	return run(ctx, store, s)
}

func (f *migrationFlags) list(s *meta.Snapshot) error {
	all := server.MigrationsOf(s)
	switch {
	case f.json && all == nil:
		return printJSON(f.cmd, []server.MigrationStatus{})
	case f.json:
		return printJSON(f.cmd, all)
	case len(all) == 0:
		fmt.Fprintln(f.cmd.OutOrStdout(), "There was no migration yet. `ostro migrate --help` shows how to begin one.")
		return nil
	}
	printMigrations(f.cmd.OutOrStdout(), all)
	return nil
}

// printMigrations writes a line for each.
func printMigrations(out io.Writer, all []server.MigrationStatus) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "MIGRATION\tFROM\tTO\tSHARE\tSLOTS\tSTAGE\tRECORDS\tMB\tMB/S\tTOOK\t")
	for _, m := range all {
		fmt.Fprintf(w, "%d\t%s\t%s\t%.1f%%\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", m.ID, m.Source, m.Target, m.Share*100, few(slotsOf(m.Ranges), 2),
			stageOf(m), thousands(m.Records), megabytes(m.Bytes), rateOf(m), tookOf(m), remarkOf(m))
	}
	_ = w.Flush()
}

func stageOf(m server.MigrationStatus) string {
	if m.Settling() && !m.Cancel {
		return "settling"
	}
	return string(m.Stage)
}

func rateOf(m server.MigrationStatus) string {
	took := m.Took()
	switch {
	case m.Progress != nil && m.Progress.Rate > 0 && m.Served.IsZero():
		return megabytes(int64(m.Progress.Rate))
	case took <= 0 || m.Bytes == 0:
		return "-"
	}
	return megabytes(int64(float64(m.Bytes) / took.Seconds()))
}

func tookOf(m server.MigrationStatus) string {
	if m.Began.IsZero() {
		return "-"
	}
	return m.Took().Round(10 * time.Millisecond).String()
}

// remarkOf is what it does, or why it did what it did.
func remarkOf(m server.MigrationStatus) string {
	switch {
	case m.Stage.Ended():
		return m.Why
	case m.Left > 0 && m.Served.IsZero():
		return fmt.Sprintf("%s, about %s left", m.Doing, m.Left.Round(100*time.Millisecond))
	}
	return m.Doing
}

func (f *migrationFlags) status(ctx context.Context, store *meta.Store, s *meta.Snapshot, id uint64) error {
	m, there := migrationIn(s, id)
	if !there {
		return fmt.Errorf("there is no migration %d: `ostro migrate list` shows those that are known", id)
	}
	var look *impact
	if f.watch && !m.Stage.Ended() {
		look = newImpact(s, m.Source, m.Target)
		look.before(ctx, 0)
		var err error
		if m, err = followMigration(ctx, store, id, ended, look, newMigrationScreen(f.cmd.OutOrStdout(), f.json)); err != nil && ctx.Err() == nil {
			return err
		}
	}
	r := migrationReport{MigrationStatus: m, Impact: look.report()}
	if f.json {
		return printJSON(f.cmd, r)
	}
	r.print(f.cmd.OutOrStdout())
	return nil
}

func (f *migrationFlags) cancel(ctx context.Context, store *meta.Store, id uint64) error {
	if err := store.CancelMigration(ctx, id); err != nil {
		return err
	}
	if f.detach {
		return f.cancelling(ctx, store, id)
	}
	m, err := followMigration(ctx, store, id, ended, nil, newMigrationScreen(f.cmd.OutOrStdout(), f.json))
	if err != nil {
		return err
	}
	r := migrationReport{MigrationStatus: m}
	if f.json {
		err = printJSON(f.cmd, r)
	} else {
		r.print(f.cmd.OutOrStdout())
	}
	if m.Stage == meta.Done && err == nil {
		return fmt.Errorf("migration %d was done before it could be cancelled: move the ranges back with `ostro migrate --from %s --to %s`", id, m.Target, m.Source)
	}
	return err
}

// cancelling tells of a migration that is being cancelled, and whose end nobody waits for.
func (f *migrationFlags) cancelling(ctx context.Context, store *meta.Store, id uint64) error {
	if !f.json {
		fmt.Fprintf(f.cmd.OutOrStdout(), "Migration %d is being cancelled.\n", id)
		return nil
	}
	s, err := store.Read(ctx)
	if err != nil {
		return err
	}
	m, _ := migrationIn(s, id)
	return printJSON(f.cmd, migrationReport{MigrationStatus: m})
}
