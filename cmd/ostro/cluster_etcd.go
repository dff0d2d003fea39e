package main

import (
	"net"

	"github.com/spf13/cobra"

	"github.com/ostrodb/ostro/cluster/meta"
)

func newClusterEtcd() *cobra.Command {
	var c meta.EmbeddedConfig
	var logs logFlags
	cmd := &cobra.Command{
		Use:   "etcd",
		Short: "Run an etcd of one member, to try out nodes by hand",
		Long: `Run an etcd of one member until SIGINT or SIGTERM. It is for development, as
` + "`ostro cluster dev`" + ` has one, too: a cluster that matters wants three members of a real
etcd. With a certificate clients come in by TLS, and with --client-ca they need one, too.
Users and passwords are etcd's own: ` + "`etcdctl user add`" + `, ` + "`etcdctl auth enable`" + `.`,
		Example: `  ostro cluster etcd
  ostro cluster etcd --addr 10.0.0.7:2379 --dir /var/lib/ostro-etcd
  ostro server --cluster etcd://127.0.0.1 --node-id a --port 7000 --dir ./a     then such nodes
  ostro cluster etcd --cert server.pem --key server.key --client-ca ca.pem
  ostro server --cluster 'etcd://127.0.0.1/prod?ca=ca.pem&cert=node.pem&key=node.key' --node-id a --dir ./a`,
		Args: takes(0, 0, "no arguments; the address is given with --addr"),
		RunE: func(*cobra.Command, []string) error { return runClusterEtcd(c, logs) },
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVar(&c.Addr, "addr", "127.0.0.1:2379", "host:port for nodes")
	cmd.Flags().StringVar(&c.Dir, "dir", "./ostro-etcd", "directory, kept")
	cmd.Flags().StringVar(&c.CertFile, "cert", "", "file with the certificate for TLS; none: no TLS")
	cmd.Flags().StringVar(&c.KeyFile, "key", "", "file with its key")
	cmd.Flags().StringVar(&c.ClientCAFile, "client-ca", "", "file with the authority whose certificates clients must have; none: they need none")
	logs.add(cmd)
	_ = cmd.MarkFlagDirname("dir")
	return cmd
}

func runClusterEtcd(c meta.EmbeddedConfig, logs logFlags) error {
	ctx, cancel := untilSignal()
	defer cancel()
	if _, _, err := net.SplitHostPort(c.Addr); err != nil {
		return usagef("--addr is %q; write it like 127.0.0.1:2379", c.Addr)
	}
	if (c.CertFile == "") != (c.KeyFile == "") || c.CertFile == "" && c.ClientCAFile != "" {
		return usagef("TLS needs a certificate and its key: give both --cert and --key")
	}
	log, err := logs.logger()
	if err != nil {
		return err
	}
	c.Log = log
	e, err := meta.StartEmbedded(ctx, c)
	if err != nil {
		return err
	}
	defer e.Close()
	log.Info("serving", "cluster", e.URL(), "dir", c.Dir)
	<-ctx.Done()
	log.Info("stopping")
	return nil
}
