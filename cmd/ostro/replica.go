package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ostrodb/ostro/cluster/group"
	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/provider"
	"github.com/ostrodb/ostro/server"
)

// replicaFlags are what an operator decides about a replica process.
type replicaFlags struct {
	listen string
	fabric string
	memory string
	file   string
	name   string
	secret string
	admin  string
	logs   logFlags
}

func newReplica() *cobra.Command {
	f := &replicaFlags{}
	cmd := &cobra.Command{
		Use:   "replica",
		Short: "Lend memory to a group: a replica in a process of its own",
		Long: `Lend memory to one group at a time, until SIGINT or SIGTERM.

A client opens a group of such replicas (group.Dial and group.Open in Go), and
from then on all of them take its writes, compare-and-swaps, copies and flushes,
executed by their NICs. This process has no part in it. With
` + "`ostro nic`" + ` (a shm:// fabric) the group goes on while it is stopped or starved.

Clients ask for the memory at --listen. A unix socket is for processes of this
user; tcp needs a secret that clients and replicas share. When a client ends or
vanishes, the memory keeps its bytes and is offered anew.

With --file the memory is a file, which keeps what was acknowledged when every
process is killed; durable operations and flushes are on its disk, too.`,
		Example: `  ostro nic &                                                  a NIC for this machine
  ostro replica --memory 256MiB                                memory, lost with the process
  ostro replica --memory 1GiB --file /var/lib/ostro/replica    kept in a file
  ostro replica --listen unix:///run/ostro/r1.sock --name r1   one of several
  ostro replica --listen tcp://10.0.0.7:7500 --fabric tcp://10.0.0.7:7400 --secret-file /etc/ostro/secret
  ostro replica --admin 127.0.0.1:9121                         metrics on http://127.0.0.1:9121/metrics`,
		Args: takes(0, 0, "no arguments; the place to listen is given with --listen"),
		RunE: func(*cobra.Command, []string) error { return runReplica(f) },
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVar(&f.listen, "listen", "unix://"+runtimePath("ostro-replica.sock"), "where clients ask: unix:///path or tcp://host:port")
	cmd.Flags().StringVar(&f.fabric, "fabric", "shm://"+defaultSocket(), "fabric that carries the memory: shm:///path of a NIC, or tcp://host:port")
	cmd.Flags().StringVar(&f.memory, "memory", "64MiB", "how much memory to lend; all replicas of a group lend the same")
	cmd.Flags().StringVar(&f.file, "file", "", "file that is the memory; made if it is not there")
	cmd.Flags().StringVar(&f.name, "name", fmt.Sprintf("replica-%d", os.Getpid()), "name shown to clients and in logs")
	cmd.Flags().StringVar(&f.secret, "secret-file", "", "file with the secret that clients and replicas share; required with tcp://")
	addAdmin(cmd, &f.admin)
	f.logs.add(cmd)
	_ = cmd.MarkFlagFilename("file")
	_ = cmd.MarkFlagFilename("secret-file")
	return cmd
}

func runReplica(f *replicaFlags) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	log, err := f.logs.logger()
	if err != nil {
		return err
	}
	bytes, err := server.ParseSize(f.memory)
	if err != nil || bytes <= 0 {
		return usagef("--memory is %q; write it like 64MiB or 1GiB", f.memory)
	}
	var secret []byte
	if f.secret != "" {
		if secret, err = readSecret(f.secret); err != nil {
			return err
		}
	}
	mem, err := replicaMemory(f.file, int(bytes))
	if err != nil {
		return err
	}
	defer mem.Close()
	dev, err := provider.Open(context.Background(), f.fabric, provider.Options{Name: f.name, Secret: secret, Log: log})
	if err != nil {
		return err
	}
	err = serveReplica(f, group.NewReplica(dev, mem), dev, secret, log, signals)
	return errors.Join(err, dev.Close(), syncFile(f.file, mem))
}

// serveReplica lets clients in until a signal comes or the NIC is lost.
func serveReplica(f *replicaFlags, r *group.Replica, dev fabric.Device, secret []byte, log *slog.Logger, signals <-chan os.Signal) error {
	defer r.Leave()
	s, err := group.Serve(f.listen, r, group.ServeOptions{Secret: secret, Log: log})
	if err != nil {
		return err
	}
	defer s.Close()
	admin, stop, err := startAdmin(f.admin, &replicaNode{replica: r, control: s, dev: dev, flags: f}, log)
	if err != nil {
		return err
	}
	defer stop()
	log.Info("serving", "listen", s.Addr(), "fabric", f.fabric, "memory", f.memory, "file", f.file, "name", f.name,
		"admin", admin, "version", server.BuildInfo().Version)
	lost := time.NewTicker(time.Second)
	defer lost.Stop()
	for {
		select {
		case sig := <-signals:
			log.Info("stopping", "signal", sig.String())
			return nil
		case <-lost.C:
			if _, err := dev.Metrics(); errors.Is(err, fabric.ErrNICLost) {
				return fmt.Errorf("%w; start `ostro nic`, and then this replica again", err)
			}
		}
	}
}

// runtimePath is where this user's sockets are.
func runtimePath(name string) string {
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if dir == "" {
		dir = os.TempDir()
	}
	return filepath.Join(dir, name)
}
