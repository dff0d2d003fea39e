package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/server"
)

// clusterReport is what `cluster status` tells. Its JSON is for scripts: fields are
// added, never renamed.
type clusterReport struct {
	Cluster string `json:"cluster"`
	Health  string `json:"health"`
	server.ClusterStatus
	// Processes are those of a cluster on this machine, by node.
	Processes map[view.NodeID]int `json:"processes,omitempty"`
}

// What Health can be.
const (
	healthOK         = "ok"         // every key is served and has all its copies
	healthDegraded   = "degraded"   // every key is served, some with fewer copies
	healthRecovering = "recovering" // others are taking over what a dead node had
	healthWaiting    = "waiting"    // a dead node cannot be replaced yet
	healthForming    = "forming"    // nobody owns any key yet
)

func reportOf(cluster, dir string, st server.ClusterStatus) clusterReport {
	r := clusterReport{Cluster: cluster, Health: healthOf(st), ClusterStatus: st}
	if local, err := readClusterState(dir); dir != "" && err == nil {
		r.Processes = map[view.NodeID]int{}
		for _, n := range local.Nodes {
			r.Processes[view.NodeID(n.ID)] = n.PID
		}
	}
	return r
}

func healthOf(st server.ClusterStatus) string {
	health := healthOK
	for _, l := range st.Logs {
		if l.Degraded {
			health = healthDegraded
		}
	}
	for _, r := range st.Recoveries {
		switch {
		case !r.Begun:
			health = healthWaiting
		case health == healthWaiting:
		case !r.Served():
			health = healthRecovering
		case health == healthOK:
			health = healthDegraded // What heirs took has no copies of its own yet.
		}
	}
	switch {
	case !st.Dealt:
		return healthForming
	case st.Coordinator == "" && health == healthOK:
		return healthDegraded // Nobody would react to the next failure.
	}
	return health
}

// served tells whether every key is.
func (r clusterReport) served() bool { return r.Health == healthOK || r.Health == healthDegraded }

// secret is what nodes want to see before they tell of themselves; nil is the one in etcd.
func (f *statusFlags) secret(dir string) ([]byte, error) {
	switch {
	case f.secretFile != "":
		return readSecret(f.secretFile)
	case dir != "":
		return readSecret(filepath.Join(dir, secretName))
	}
	return nil, nil
}

// read asks etcd and all living nodes.
func (f *statusFlags) read(ctx context.Context, store *meta.Store, url, dir string) (clusterReport, error) {
	secret, err := f.secret(dir)
	if err != nil {
		return clusterReport{}, err
	}
	st, err := server.ReadClusterStatus(ctx, store, secret)
	if err != nil {
		return clusterReport{}, err
	}
	return reportOf(url, dir, st), nil
}

// slotsOf is which slots ranges are, as 0-4095 or, for a part of one, 17*.
func slotsOf(ranges view.Ranges) (all []string) {
	for _, r := range ranges {
		first, last := r.First.Slot(), r.Last.Slot()
		whole := view.SlotsRange(first, last) == r
		switch {
		case !whole && first == last:
			all = append(all, fmt.Sprintf("%d*", first))
		case !whole:
			all = append(all, fmt.Sprintf("%d-%d*", first, last))
		case first == last:
			all = append(all, fmt.Sprint(first))
		default:
			all = append(all, fmt.Sprintf("%d-%d", first, last))
		}
	}
	return all
}
