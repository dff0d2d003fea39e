package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/engine/device"
)

// clusterState is what `cluster dev` keeps of a cluster in its directory, for its next start
// and for other commands.
type clusterState struct {
	Etcd        string        `json:"etcd"` // URL
	Port        int           `json:"port"` // of the first node
	Fabric      string        `json:"fabric"`
	Replication string        `json:"replication"`
	Nodes       []clusterNode `json:"nodes"`
	PID         int           `json:"pid,omitempty"` // of `cluster dev`, while it runs
	NIC         int           `json:"nicPid,omitempty"`
}

// clusterNode is one of its nodes.
type clusterNode struct {
	Number int    `json:"number"` // from 1
	ID     string `json:"id"`
	Redis  string `json:"redis"`
	// Native is for native clients and other nodes.
	Native string `json:"native"`
	Admin  string `json:"admin"`
	Dir    string `json:"dir"`
	Log    string `json:"log"`
	PID    int    `json:"pid,omitempty"`
}

// Where a cluster's ports lie, counted from the first node's.
const (
	adminOffset  = 100
	etcdOffset   = 99
	nativeOffset = 10000
	mostDevNodes = 64
)

const stateName = "cluster.json"

// readClusterState reads what the last `cluster dev` left in dir.
func readClusterState(dir string) (clusterState, error) {
	var s clusterState
	text, err := os.ReadFile(filepath.Join(dir, stateName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, usagef("there is no cluster in %s: start one with `ostro cluster dev --dir %s`, or name one with --dir or --cluster etcd://...", dir, dir)
	case err != nil:
		return s, err
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("read %s: %w", filepath.Join(dir, stateName), err)
	}
	return s, nil
}

// write replaces the file, whole or not at all.
func (s clusterState) write(dir string) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	name := filepath.Join(dir, stateName)
	if err := os.WriteFile(name+device.TempSuffix, append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(name+device.TempSuffix, name)
}

// node is the n-th node, from 1, of a cluster in dir.
func (s clusterState) node(dir string, n int) clusterNode {
	at := func(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port+n-1)) }
	id := fmt.Sprintf("node%d", n)
	return clusterNode{
		Number: n, ID: id, Redis: at(s.Port), Native: at(s.Port + nativeOffset), Admin: at(s.Port + adminOffset),
		Dir: filepath.Join(dir, id), Log: filepath.Join(dir, id+".log"),
	}
}

// next is the lowest number that no node has.
func (s clusterState) next() int {
	for n := 1; ; n++ {
		if !slices.ContainsFunc(s.Nodes, func(c clusterNode) bool { return c.Number == n }) {
			return n
		}
	}
}

// lockClusterDir keeps a second `cluster dev` out. The lock ends with the process.
func lockClusterDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "LOCK"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("a cluster runs in %s already: look at it with `ostro cluster status --dir %s`, or choose another --dir", dir, dir)
	}
	return f, nil
}

// notRunning explains why a cluster of `cluster dev` does not answer.
func notRunning(dir string, err error) error {
	if err == nil || dir == "" {
		return err
	}
	lock, free := lockClusterDir(dir)
	if free != nil {
		return err
	}
	_ = lock.Close()
	return fmt.Errorf("the cluster in %s does not run: start it with `ostro cluster dev --dir %s`", dir, dir)
}

func quietLog() *slog.Logger { return slog.New(slog.DiscardHandler) }
