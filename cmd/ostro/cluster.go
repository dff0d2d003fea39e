package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ostrodb/ostro/cluster/meta"
)

func newCluster() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Run, look at and change a cluster",
		Long: `Several nodes that share the keys, each with copies of its log on others: a node
that dies is replaced by the others within seconds, and no acknowledged write is lost.

` + "`ostro cluster dev`" + ` runs a whole one on this machine. For a real one, start
` + "`ostro server --cluster etcd://a,b,c`" + ` on each machine, beside an etcd that you run.`,
		Example: `  ostro cluster dev --nodes 4                       a cluster on this machine
  ostro cluster status --watch                      what it does, here in ./ostro-cluster
  ostro cluster status --cluster etcd://a,b,c       a real one
  ostro cluster add                                 one more node on this machine
  ostro cluster drain node2                         node2 gives all it has to the others
  ostro cluster remove node2                        and is forgotten`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newClusterDev(), newClusterStatus(), newClusterAdd(), newClusterDrain(), newClusterRemove(), newClusterBalance(), newClusterEtcd())
	return cmd
}

// whichCluster is how a command is told which cluster is meant.
type whichCluster struct{ url, dir string }

const defaultClusterDir = "./ostro-cluster"

func (w *whichCluster) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&w.url, "cluster", os.Getenv("OSTRO_CLUSTER"), "where its metadata is: etcd://host[:port],.../[name] (or OSTRO_CLUSTER)")
	cmd.Flags().StringVar(&w.dir, "dir", "", "directory of a cluster of ostro cluster dev; ./ostro-cluster if --cluster is not given")
	_ = cmd.MarkFlagDirname("dir")
}

// find returns the cluster's URL, and its directory if it is one of `cluster dev`.
func (w *whichCluster) find() (url, dir string, err error) {
	switch {
	case w.url != "" && w.dir != "":
		return "", "", usagef("give --cluster or --dir, not both")
	case w.url != "":
		return w.url, "", nil
	case w.dir == "":
		w.dir = defaultClusterDir
	}
	s, err := readClusterState(w.dir)
	if err != nil {
		return "", "", err
	}
	return s.Etcd, w.dir, nil
}

// open connects to the cluster's metadata.
func (w *whichCluster) open(ctx context.Context) (*meta.Store, string, error) {
	url, dir, err := w.find()
	if err != nil {
		return nil, "", err
	}
	c, err := meta.ParseURL(url)
	if err != nil {
		return nil, "", usageError{err}
	}
	c.Log = quietLog()
	c.DialTimeout = 5 * time.Second
	s, err := meta.Open(ctx, c)
	return s, dir, notRunning(dir, err)
}

// untilSignal is a context that ends with SIGINT or SIGTERM.
func untilSignal() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
}
