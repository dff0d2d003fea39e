package main

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
)

// wishFlags are those of commands that want something of a cluster.
type wishFlags struct {
	which   whichCluster
	timeout time.Duration
	lost    bool
	empty   bool
}

func (f *wishFlags) add(cmd *cobra.Command) {
	cmd.Flags().SortFlags = false
	f.which.add(cmd)
	cmd.Flags().DurationVar(&f.timeout, "timeout", 2*time.Minute, "how long to wait until it is done; it goes on afterwards")
}

func newClusterAdd() *cobra.Command {
	f := &wishFlags{}
	cmd := &cobra.Command{
		Use:   "add [NODE]",
		Short: "Add a node",
		Long: `Without a name: start one more node of a cluster of ` + "`ostro cluster dev`" + `.

With a name: a node that has joined, or that was drained and shall stay after all. To add a
machine to a real cluster, start ` + "`ostro server --cluster etcd://... --node-id NAME --dir DIR`" + ` on
it, which joins by itself, and then name it here.

The node is given its share of the keys: each of the others moves a part of what it has,
by migrations, while clients go on. With --empty it gets none, and is only backup
and heir of others until keys are moved to it with ` + "`ostro migrate`" + `.`,
		Example: `  ostro cluster add                                 one more in ./ostro-cluster, with its share of the keys
  ostro cluster add --empty                         one more that owns nothing yet
  ostro cluster add node2                           node2 was drained and shall stay after all
  ostro cluster add db-7 --cluster etcd://a,b,c     db-7 has just joined: it gets its share`,
		Args: takes(0, 1, "the name of a node, or nothing for a new one on this machine"),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return addHere(f)
			}
			return f.wish(view.NodeID(args[0]), meta.Wish{Act: meta.Add, Share: !f.empty}, f.added())
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&f.empty, "empty", false, "move no keys to it")
	return cmd
}

// added is what became of a node that was added.
func (f *wishFlags) added() string {
	if f.empty {
		return "takes part, without keys of its own"
	}
	return "has its share of the keys"
}

func newClusterDrain() *cobra.Command {
	f := &wishFlags{}
	cmd := &cobra.Command{
		Use:   "drain NODE",
		Short: "Let a node give all it has to the others",
		Long: `Let a node move all it has to the others, by migrations, while clients go on, and give it
nothing new. Then it can be stopped, or come back with ` + "`ostro cluster add NODE`" + `.
It is refused if there is no other node to take the keys, or if the only one would be left without copies.

Whoever cancels one of the migrations (` + "`ostro migrate cancel`" + `) takes the drain back. A node that
cannot move its keys any more can be stopped: others take them over from their copies.`,
		Example: `  ostro cluster drain node2
  ostro cluster drain db-7 --cluster etcd://a,b,c`,
		Args: takes(1, 1, "the name of one node"),
		RunE: func(_ *cobra.Command, args []string) error {
			return f.wish(view.NodeID(args[0]), meta.Wish{Act: meta.Drain}, "owns nothing any more")
		},
	}
	f.add(cmd)
	return cmd
}

func newClusterRemove() *cobra.Command {
	f := &wishFlags{}
	cmd := &cobra.Command{
		Use:   "remove NODE",
		Short: "Forget a node that is dead, or was drained and stopped",
		Long: `Forget a node that is dead and was replaced by others, or that was drained and stopped. In a
cluster of ` + "`ostro cluster dev`" + ` a node that owns no keys is stopped first.

A recovery waits for a dead node if too few of those that have its copies answer.
If it will never come back, say so with --lost: then the others go on with what
there is. What only lost nodes had is lost.`,
		Example: `  ostro cluster remove node2
  ostro cluster remove node2 --lost                 its disk is gone for good`,
		Args: takes(1, 1, "the name of one node"),
		RunE: func(_ *cobra.Command, args []string) error {
			return f.remove(view.NodeID(args[0]))
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&f.lost, "lost", false, "the node never comes back, nor what only it had")
	return cmd
}

// addHere starts one more node of a cluster on this machine.
func addHere(f *wishFlags) error {
	ctx, cancel := f.bounded()
	defer cancel()
	store, dir, err := f.which.open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	if dir == "" {
		return usagef("a node of a real cluster is added by starting it: `ostro server --cluster %s --node-id NAME --dir DIR` on its machine", f.which.url)
	}
	var n clusterNode
	if err := order(ctx, dir, "/add", &n); err != nil {
		return err
	}
	cache, err := store.Follow(ctx)
	if err != nil {
		return err
	}
	defer cache.Close()
	if _, err := cache.Wait(ctx, func(s *meta.Snapshot) bool { return s.IsAlive(view.NodeID(n.ID)) }); err != nil {
		return fmt.Errorf("%s was started as process %d and has not joined yet, look at %s: %w", n.ID, n.PID, n.Log, err)
	}
	fmt.Printf("%s has joined: %s, process %d.\n", n.ID, n.Redis, n.PID)
	if f.empty {
		return nil
	}
	return f.fulfil(ctx, store, view.NodeID(n.ID), meta.Wish{Act: meta.Add, Share: true}, f.added())
}

func (f *wishFlags) bounded() (context.Context, context.CancelFunc) {
	ctx, cancel := untilSignal()
	bounded, cancelToo := context.WithTimeout(ctx, f.timeout)
	return bounded, func() { cancelToo(); cancel() }
}

// wish asks the cluster for something and waits until it is done.
func (f *wishFlags) wish(n view.NodeID, w meta.Wish, done string) error {
	ctx, cancel := f.bounded()
	defer cancel()
	store, _, err := f.which.open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	return f.fulfil(ctx, store, n, w, done)
}

func (f *wishFlags) fulfil(ctx context.Context, store *meta.Store, n view.NodeID, w meta.Wish, done string) error {
	asked, err := store.Wish(ctx, n, w)
	if err != nil {
		return err
	}
	err = store.Fulfil(ctx, n, asked, func(why string) { fmt.Println("Waiting: " + why) })
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s of %s is not done yet and goes on: `ostro cluster status` tells how far it is", w.Act, n)
	case err != nil:
		return err
	}
	fmt.Printf("%s %s.\n", n, done)
	return nil
}

// remove forgets a node, and ends its process if we run the cluster.
func (f *wishFlags) remove(n view.NodeID) error {
	ctx, cancel := f.bounded()
	defer cancel()
	store, dir, err := f.which.open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	if dir != "" {
		// A node that lives cannot be removed; this one would be started again for ever.
		if err := f.release(ctx, store, dir, n); err != nil {
			return err
		}
	}
	return f.fulfil(ctx, store, n, meta.Wish{Act: meta.Remove, Lost: f.lost}, "is forgotten")
}

// release ends the process of a node that owns nothing, in a cluster on this machine.
func (f *wishFlags) release(ctx context.Context, store *meta.Store, dir string, n view.NodeID) error {
	s, err := store.Read(ctx)
	if err != nil {
		return err
	}
	switch {
	case s.Nodes[n].ID == "":
		return fmt.Errorf("there is no node %s: `ostro cluster status` lists them", n)
	case s.IsAlive(n) && len(s.Map.Ranges(n)) > 0:
		return fmt.Errorf("%s is alive and owns keys: drain it first with `ostro cluster drain %s`", n, n)
	}
	return order(ctx, dir, "/forget/"+url.PathEscape(string(n)), nil)
}
