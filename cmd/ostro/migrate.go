package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
)

// migrateFlags are those of `ostro migrate`.
type migrateFlags struct {
	which    whichCluster
	from, to string
	what     whatToMove
	options  meta.MigrationOptions
	why      string
	detach   bool
	json     bool
	baseline time.Duration
	cmd      *cobra.Command // whose output is ours
}

func newMigrate() *cobra.Command {
	f := &migrateFlags{}
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Move keys from one node of a cluster to another while they are served",
		Long: `Move a part of what one node owns to another while clients use it. The target owns
the keys at once: it takes writes from the first moment, and what is read before
it has arrived is fetched first. Nothing acknowledged is lost if either node dies meanwhile.

Say what to move with one of --slots, --range and --fraction. If a range is cut within a slot,
cluster clients find the keys of that slot by redirects, and commands on several of its keys (MGET,
MSET, DEL) that lie at two nodes then are refused with CROSSSLOT: split them, or cut between slots.

The command waits and shows how far it is, and what it does to clients: the 99.9th
percentile of the time that both nodes took to answer, before and meanwhile. Ctrl-C ends the
waiting, not the migration; ` + "`ostro migrate cancel`" + ` returns the keys to the source.

Records that are not in the source's memory follow later: the command ends when the target
carries all load, and ` + "`ostro migrate status`" + ` shows how many are still to come. Until then the
source is needed; see --cold for other ways.`,
		Example: `  ostro migrate --from node1 --to node2 --fraction 0.5     half of what node1 owns
  ostro migrate --from node1 --to node2 --slots 0-99,200   these slots
  ostro migrate --from node1 --to node2 --range 40-4f      places that begin so, in hexadecimal digits
  ostro migrate --from a --to b --fraction 1 --detach --cluster etcd://a,b,c
  ostro migrate list                                       those under way and the last ones
  ostro migrate status 3 --watch
  ostro migrate cancel 3                                   node1 gets all back, with what node2 wrote`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().NFlag() == 0 {
				return cmd.Help()
			}
			f.cmd, f.what.share = cmd, cmd.Flags().Changed("fraction")
			return f.run()
		},
	}
	f.add(cmd)
	cmd.AddCommand(newMigrateList(), newMigrateStatus(), newMigrateCancel())
	return cmd
}

func (f *migrateFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVar(&f.from, "from", "", "the node that has the keys")
	fl.StringVar(&f.to, "to", "", "the node that shall have them")
	fl.StringVar(&f.what.slots, "slots", "", "Redis Cluster slots: 0-99,200")
	fl.StringVar(&f.what.ranges, "range", "", "places as hexadecimal digits: 4000-7fff; missing digits are all")
	fl.Float64Var(&f.what.fraction, "fraction", 0, "a part of what --from owns, by places: above 0, up to 1")
	fl.BoolVar(&f.detach, "detach", false, "do not wait until it has ended")
	fl.BoolVar(&f.json, "json", false, "the result as JSON")
	fl.StringVar(&f.options.PriorityPulls, "priority-pulls", meta.PriorityPullsAsync, "how keys that clients wait for are fetched: async, sync, or none (they wait for their turn)")
	fl.StringVar(&f.options.Ownership, "ownership", meta.OwnershipEarly, "when the target serves: early, or late for comparison (the source serves until the target has everything)")
	fl.BoolVar(&f.options.Sample, "sample", true, "send what clients use most ahead")
	fl.StringVar(&f.options.Cold, "cold", meta.ColdIndirect, "how records move that are not in the source's memory: indirect (they follow), read (each for its pull), or scan (the whole log is read)")
	fl.StringVar(&f.why, "why", "", "a reason that is shown in lists")
	fl.DurationVar(&f.baseline, "baseline", time.Second, "how long to look at the clients' latency before it begins; 0: not at all")
	f.which.add(cmd)
}

func (f *migrateFlags) run() error {
	ctx, cancel := untilSignal()
	defer cancel()
	if f.from == "" || f.to == "" {
		return usagef("say between which nodes to move: --from NODE --to NODE; `ostro cluster status` lists them")
	}
	if f.from == f.to {
		return usagef("%s has these ranges already: move them to another node", f.to)
	}
	if err := f.options.Check(); err != nil {
		return usagef("%v", err)
	}
	if err := f.what.check(); err != nil {
		return err
	}
	store, _, err := f.which.open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	s, err := store.Read(ctx)
	if err != nil {
		return err
	}
	req, err := f.request(s)
	if err != nil {
		return err
	}
	var look *impact
	if !f.detach {
		look = newImpact(s, req.Source, req.Target)
		look.before(ctx, f.baseline)
	}
	m, err := store.Migrate(ctx, req)
	if err != nil {
		return err
	}
	if f.detach {
		return f.begun(m)
	}
	return f.wait(ctx, store, m, look)
}

// request is what is asked of the cluster. What the source does not own, and is not about to get, is refused here:
// later nobody looks.
func (f *migrateFlags) request(s *meta.Snapshot) (meta.MigrationRequest, error) {
	req := meta.MigrationRequest{Source: view.NodeID(f.from), Target: view.NodeID(f.to), Options: f.options, Why: f.why}
	for _, n := range []view.NodeID{req.Source, req.Target} {
		if _, known := s.Nodes[n]; !known {
			return req, usagef("there is no node %s: `ostro cluster status` lists them", n)
		}
	}
	owned := s.Map.Ranges(req.Source)
	for _, m := range s.AllMigrations() {
		if m.Target == req.Source && (m.Stage == meta.Wanted || m.Stage == meta.Copying) {
			owned = owned.Union(m.Ranges) // It waits its turn, or is copied until its end.
		}
	}
	if len(owned) == 0 {
		return req, fmt.Errorf("%s owns nothing that could be moved", req.Source)
	}
	ranges, err := f.what.of(s.Map.Ranges(req.Source))
	if err != nil {
		return req, err
	}
	req.Ranges = ranges
	if missing := ranges.Subtract(owned); len(missing) > 0 {
		return req, usagef("%s does not own %s: %s", req.Source, slotText(missing), ownersOf(s, missing))
	}
	return req, nil
}

// ownersOf says who owns ranges.
func ownersOf(s *meta.Snapshot, ranges view.Ranges) string {
	var owners []string
	for _, n := range s.Map.Owners() {
		if len(s.Map.Ranges(n).Intersect(ranges)) > 0 {
			owners = append(owners, string(n))
		}
	}
	switch len(owners) {
	case 0:
		return "nobody does"
	case 1:
		return owners[0] + " does"
	}
	return few(owners, 4) + " do"
}

// begun tells of a migration that nobody waits for.
func (f *migrateFlags) begun(m meta.Migration) error {
	if f.json {
		return printJSON(f.cmd, m)
	}
	fmt.Fprintf(f.cmd.OutOrStdout(), "Migration %d is wanted: %s from %s to %s. `ostro migrate status %d` tells how far it is.\n", m.ID, slotText(m.Ranges), m.Source, m.Target, m.ID)
	return nil
}

// wait shows the migration until it has ended.
func (f *migrateFlags) wait(ctx context.Context, store *meta.Store, m meta.Migration, look *impact) error {
	seen, err := followMigration(ctx, store, m.ID, moved, look, f.screen())
	switch {
	case ctx.Err() != nil:
		fmt.Fprintf(f.cmd.ErrOrStderr(), "Migration %d goes on. `ostro migrate status %d` tells how far it is; `ostro migrate cancel %d` ends it.\n", m.ID, m.ID, m.ID)
		return silentError{exitFailure}
	case err != nil:
		return err
	}
	r := migrationReport{MigrationStatus: seen, Impact: look.report()}
	if f.json {
		err = printJSON(f.cmd, r)
	} else {
		r.print(f.cmd.OutOrStdout())
	}
	if !seen.Moved() && err == nil {
		return silentError{exitFailure}
	}
	return err
}

// screen is where progress is shown; nil if only the result is wanted.
func (f *migrateFlags) screen() *migrationScreen {
	return newMigrationScreen(f.cmd.OutOrStdout(), f.json)
}
