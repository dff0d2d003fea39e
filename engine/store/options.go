// Package store is Ostro's engine on one node: a hash index over a log of
// records, with tiers, durability, cleaning and recovery. It is a library: no
// network, no server.
//
//	Session  Get Put Delete RMW Add, batches, transactions, scans
//	   |                                  one per worker; operations never wait
//	index    place -> address             off the heap, compare-and-swap
//	hlog     address -> bytes             memory, disk, blob
//	   ^
//	cleaner, checkpoints, expiry, recovery, in the background
//
// Invariants:
//   - The index holds one entry per present key; of a key's entries in the log
//     the one with the highest version is the truth. So replay works in any order.
//   - A key's version only grows, over deletions too: a new record starts above
//     the floor of its stripe, and a deletion raises that floor first.
//   - Nothing is acknowledged before Durable says so for its ticket.
package store

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/hlog"
	"github.com/ostrodb/ostro/engine/record"
)

// Durability is what an acknowledged write survives.
type Durability uint8

const (
	// None: nothing is kept but what Checkpoint is called for.
	None Durability = iota
	// Checkpoint: what the last checkpoint holds.
	Checkpoint
	// EverySec: death of the process at any moment; loss of power but for the
	// last second.
	EverySec
	// Always: loss of power, too; a sync precedes every reply.
	Always
)

var durabilityNames = []string{"none", "checkpoint", "everysec", "always"}

func (d Durability) String() string { return durabilityNames[d] }

// ParseDurability reads a durability by its name.
func ParseDurability(s string) (Durability, error) {
	n, err := parseName("durability", s, durabilityNames)
	return Durability(n), err
}

// Policy is what happens when the memory limit is reached.
type Policy uint8

const (
	// Spill moves cold segments to disk.
	Spill Policy = iota
	// Refuse refuses writes.
	Refuse
	// Evict forgets the records that were not used for longest, like a cache.
	Evict
)

var policyNames = []string{"spill", "refuse", "evict"}

func (p Policy) String() string { return policyNames[p] }

// ParsePolicy reads a policy by its name.
func ParsePolicy(s string) (Policy, error) {
	n, err := parseName("memory policy", s, policyNames)
	return Policy(n), err
}

func parseName(what, s string, names []string) (int, error) {
	for n, name := range names {
		if s == name {
			return n, nil
		}
	}
	return 0, fmt.Errorf("unknown %s %q: use one of %v", what, s, names)
}

// Progress tells how far long work has come.
type Progress struct {
	Stage       string
	Done, Total int64
	Unit        string
}

// Options say how a store is kept. The zero value is a store in memory.
type Options struct {
	// Dir is the data directory; empty keeps everything in memory.
	Dir string
	// Device replaces Dir by another place for bytes, in tests.
	Device device.Device
	LogID  record.LogID
	// Durability needs a directory if it is more than None.
	Durability Durability
	// SegmentBytes is the unit of allocation, flushing and cleaning; 8 MiB.
	SegmentBytes int
	// MemoryBytes limits log and index in memory; 0 is no limit.
	MemoryBytes int64
	// Policy says what happens at that limit. Spill needs a directory.
	Policy Policy
	// Heads is how many segments are open for appends at once: one per core.
	Heads int
	// Databases is how many numbered tables there are; 16.
	Databases int
	// Now gives Unix milliseconds; the system's clock.
	Now func() int64
	// BlobURL names the shared blob tier; empty is none.
	BlobURL string
	// DiskBytes limits local segment files once the blob tier holds them; 0 is no limit.
	DiskBytes int64
	// MayUpload tells whether this store may still write to the blob tier; nil is always. One that others have taken
	// over and that does not know it yet only leaves garbage there.
	MayUpload func() bool
	// Elsewhere gives the bytes of a closed segment that others keep copies of, when the blob tier cannot; nil if
	// nobody does.
	Elsewhere func(ctx context.Context, id record.SegmentID) ([]byte, error)
	// CheckpointEvery is the pause between automatic checkpoints; 0 is none.
	CheckpointEvery time.Duration
	// Cluster says that other nodes may import this store's log. Then a database
	// has the same table for ever, Truncate deletes key by key, and Swap is refused.
	Cluster bool
	// Arriving names places that arrive from the source of a migration that had begun in a
	// former life: see Arrive. Nobody serves them until it goes on.
	Arriving []Range
	// KeepResults is how long the result of an operation is kept for another
	// attempt; 3 minutes. See Session.Once.
	KeepResults time.Duration
	// Floors say what of the log counts when it is opened: what is below one is history, as if it
	// were not there. See record.Floor.
	Floors []record.Floor
	// Owned are the places whose records are replayed when the log is opened; nil is all. What
	// the log has of others is as if it were not there.
	Owned []record.Span
	// Given are those of them that other nodes have, who need this log for them still: see Owner.
	Given []Range
	// Serves tells which places are this node's now, inside of a guard; nil is all. Truncate deletes nothing
	// of others, which a source has until their target has them.
	Serves func() func(record.Place) bool
	// Expires tells in which of them records are removed because their time is over, likewise; nil is Serves. Where logs of others are
	// still to be replayed an older version would be removed, and the newer one that follows taken for what was.
	Expires func() func(record.Place) bool
	// Owners are nodes whose places this store has records of, which it is to send them before they are cleaned; nil is
	// none. See Owner.
	Owners func() []Owner
	// Replicator keeps copies of the log elsewhere, and nothing is acknowledged before
	// it is in all of them. It needs durability everysec or always. The store closes it, also
	// if it cannot be opened.
	Replicator hlog.Replicator
	Logger     *slog.Logger
	// Progress is called now and then while a store is opened, never twice at once.
	Progress func(Progress)

	indexBytes int64 // the most that the index takes, in tests; 0: what the system gives
}

// withDefaults fills in what was left open, and checks the rest.
func (o Options) withDefaults() (Options, error) {
	if o.SegmentBytes == 0 {
		o.SegmentBytes = record.MaxSegmentBytes
	}
	if o.Heads == 0 {
		o.Heads = runtime.GOMAXPROCS(0)
	}
	if o.Databases == 0 {
		o.Databases = 16
	}
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixMilli() }
	}
	if o.KeepResults == 0 {
		o.KeepResults = 3 * time.Minute
	}
	if o.Serves == nil {
		o.Serves = func() func(record.Place) bool { return func(record.Place) bool { return true } }
	}
	if o.Expires == nil {
		o.Expires = o.Serves
	}
	if o.MayUpload == nil {
		o.MayUpload = func() bool { return true }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	return o, o.check()
}

func (o Options) check() error {
	disk := o.Dir != "" || o.Device != nil
	switch {
	case o.Durability > Always:
		return fmt.Errorf("unknown durability %d", o.Durability)
	case o.Durability != None && !disk:
		return fmt.Errorf("durability %s needs a data directory: set one, or use durability none", o.Durability)
	case o.Replicator != nil && !o.logged():
		return fmt.Errorf("a replicated store needs durability everysec or always, not %s", o.Durability)
	case o.BlobURL != "" && !disk:
		return fmt.Errorf("a blob tier needs a data directory: set one")
	case o.MemoryBytes > 0 && o.MemoryBytes < int64(8*o.SegmentBytes):
		return fmt.Errorf("a memory limit of %d bytes is too small: use at least %d, eight segments", o.MemoryBytes, 8*o.SegmentBytes)
	}
	return nil
}

// logged tells whether every write is in a file before its reply.
func (o Options) logged() bool { return o.Durability >= EverySec }
