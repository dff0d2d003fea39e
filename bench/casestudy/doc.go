// Package casestudy is what HyperLoop's two case studies share, contrib/pebble and
// contrib/bbolt: a database on a group whose NIC, replicas and front ends are processes
// of their own, the test that kills them, and the benchmark.
//
// A program that uses it is its own children, too: Main must be called first, and does not
// return in a child.
package casestudy

import (
	"context"

	"github.com/ostrodb/ostro/cluster/group"
	"github.com/ostrodb/ostro/cluster/txn"
	"github.com/ostrodb/ostro/fabric"
)

// Study is a database that a group replicates.
type Study struct {
	Name string
	// Replica prepares a replica's process beyond its memory.
	Replica func(r Replica) error
	// Open opens the database at a front end.
	Open func(ctx context.Context, f Front) (Database, error)
	// Memory is what each replica lends, of which Log is the group's log.
	Memory, Log uint64

	// Of the benchmark: what the paper says.
	Claim string
	Paper []PaperFigure
}

// Replica is a replica's process.
type Replica struct {
	Group  *group.Replica
	Memory *fabric.Memory
	Dir    string // its own
	Socket string // a path for what a front end asks it beside the group's affairs
}

// Front is what a front end has.
type Front struct {
	Log     *txn.Log
	Sockets []string // those of the replicas
	Dir     string   // its own
	Source  int      // the replica to open the database from
}

// Database is what the test and the benchmark do with a database. Commit and
// Get may be called by many goroutines at once.
type Database interface {
	// Commit sets all keys at once and returns when that is acknowledged.
	Commit(pairs ...Pair) error
	// Get returns nil for a key that is not there.
	Get(key []byte) ([]byte, error)
	Close() error
}

// Pair is a key and its value.
type Pair struct{ Key, Value []byte }
