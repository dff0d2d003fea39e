package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/ostrodb/ostro/cluster/group"
	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/nic"
	"github.com/ostrodb/ostro/server"
	"github.com/ostrodb/ostro/server/admin"
)

// logFlags say how a process that is no server logs.
type logFlags struct{ level, format string }

func (f *logFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.level, "log-level", "info", "debug, info, warn or error")
	cmd.Flags().StringVar(&f.format, "log-format", "text", "text or json")
}

func (f *logFlags) logger() (*slog.Logger, error) {
	c := server.Default()
	for _, s := range c.Settings() {
		var err error
		switch s.Key {
		case "log-level":
			err = s.Value.Set(f.level)
		case "log-format":
			err = s.Value.Set(f.format)
		}
		if err != nil {
			return nil, usagef("--%s: %v", s.Key, err)
		}
	}
	return server.NewLogger(c, os.Stderr), nil
}

func addAdmin(cmd *cobra.Command, addr *string) {
	cmd.Flags().StringVar(addr, "admin", "", "host:port of metrics, health, profiles and a status page; none without")
}

// startAdmin opens the admin port, if there shall be one, and tells where it is.
func startAdmin(addr string, node admin.Node, log *slog.Logger) (at string, stop func(), err error) {
	if addr == "" {
		return "", func() {}, nil
	}
	s, err := admin.Start(addr, server.BuildInfo().Version, node, log)
	if err != nil {
		return "", nil, fmt.Errorf("open the admin port: %w", err)
	}
	return s.Addr(), func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = s.Close(ctx)
	}, nil
}

var serving = admin.Phase{Name: "serving", Ready: true}

// replicaNode is a replica as the admin port sees it.
type replicaNode struct {
	replica *group.Replica
	control *group.Server
	dev     fabric.Device
	flags   *replicaFlags
}

func (n *replicaNode) Phase() admin.Phase { return serving }

func (n *replicaNode) Health() error {
	_, err := n.dev.Metrics()
	return err
}

func (n *replicaNode) Replica() (admin.Replica, bool) {
	return admin.Replica{Health: n.replica.Health(), Control: n.control.Metrics()}, true
}

func (n *replicaNode) Facts() []admin.Fact {
	h := n.replica.Health()
	group := "in no group"
	if h.Member {
		group = fmt.Sprintf("replica %d of %d, %s", h.Index, h.Replicas, h.Mode)
	}
	return []admin.Fact{
		{Name: "Name", Value: h.Name},
		{Name: "Memory", Value: server.Size(h.Bytes).Short()},
		{Name: "File", Value: n.flags.file},
		{Name: "Clients ask at", Value: n.control.Addr()},
		{Name: "Fabric", Value: n.flags.fabric},
		{Name: "Group", Value: group},
		{Name: "Refused", Value: strconv.FormatUint(h.Refused+h.Fabric.Refused(), 10)},
	}
}

// nicNode is a NIC as the admin port sees it.
type nicNode struct {
	engine *nic.Engine
	facts  []admin.Fact
}

func (n *nicNode) Phase() admin.Phase { return serving }

func (n *nicNode) Health() error {
	_, err := n.engine.Totals()
	return err
}

func (n *nicNode) NIC() (nic.Totals, bool) {
	t, err := n.engine.Totals()
	return t, err == nil
}

func (n *nicNode) Facts() []admin.Fact {
	t, _ := n.engine.Totals()
	return append([]admin.Fact{
		{Name: "Programs attached", Value: strconv.Itoa(t.Devices)},
		{Name: "Connections with other machines", Value: strconv.Itoa(t.Streams)},
		{Name: "Requests executed", Value: strconv.FormatUint(t.Operations, 10)},
		{Name: "Refused", Value: strconv.FormatUint(t.Refused(), 10)},
	}, n.facts...)
}
