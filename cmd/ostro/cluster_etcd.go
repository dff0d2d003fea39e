package main

import (
	"net"

	"github.com/spf13/cobra"

	"github.com/ostrodb/ostro/cluster/meta"
)

func newClusterEtcd() *cobra.Command {
	var addr, dir string
	var logs logFlags
	cmd := &cobra.Command{
		Use:   "etcd",
		Short: "Run an etcd of one member, to try out nodes by hand",
		Long: `Run an etcd of one member until SIGINT or SIGTERM, without TLS and passwords. It is
for development, as ` + "`ostro cluster dev`" + ` has one, too: a cluster that matters wants three
members of a real etcd.`,
		Example: `  ostro cluster etcd
  ostro cluster etcd --addr 10.0.0.7:2379 --dir /var/lib/ostro-etcd
  ostro server --cluster etcd://127.0.0.1 --node-id a --port 7000 --dir ./a     then such nodes`,
		Args: takes(0, 0, "no arguments; the address is given with --addr"),
		RunE: func(*cobra.Command, []string) error { return runClusterEtcd(addr, dir, logs) },
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVar(&addr, "addr", "127.0.0.1:2379", "host:port for nodes")
	cmd.Flags().StringVar(&dir, "dir", "./ostro-etcd", "directory, kept")
	logs.add(cmd)
	_ = cmd.MarkFlagDirname("dir")
	return cmd
}

func runClusterEtcd(addr, dir string, logs logFlags) error {
	ctx, cancel := untilSignal()
	defer cancel()
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return usagef("--addr is %q; write it like 127.0.0.1:2379", addr)
	}
	log, err := logs.logger()
	if err != nil {
		return err
	}
	e, err := meta.StartEmbedded(ctx, meta.EmbeddedConfig{Dir: dir, Addr: addr, Log: log})
	if err != nil {
		return err
	}
	defer e.Close()
	log.Info("serving", "cluster", e.URL(), "dir", dir)
	<-ctx.Done()
	log.Info("stopping")
	return nil
}
