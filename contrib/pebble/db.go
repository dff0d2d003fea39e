// Package ostropebble is Pebble, replicated by a group: the first case study of
// HyperLoop (there it is RocksDB).
//
//	front end                           each replica
//	Pebble ── write-ahead log ──┐       log ── executed by its NIC ──▶ journal
//	  │                         └─ txn.Append ▲                          │ from time to time
//	tables, rebuildable                                                 Copy: a Pebble of its own
//
// The front end's Pebble writes its write-ahead log to the group instead of a
// disk: what it has written goes into all replicas' logs when it syncs, as one
// transaction, and their NICs copy it from there into a journal, off the critical
// path. Each replica has a copy of the database that follows its journal, when
// its processor finds time.
//
// Invariants:
//   - A commit with pebble.Sync returns only when all replicas have it in their logs,
//     on their media.
//   - What a replica keeps is a base, which is a checkpoint of its copy at a position of
//     the journal, and the journal from there on. The front end writes over a part of
//     the journal only when every replica has told that its base is behind it.
//     So base and journal of any one replica are the whole database.
//   - A batch is applied to a copy whole, once and in order: a base has the
//     position with it, and whatever was applied since is thrown away in a crash.
//   - The front end's own directory is worth nothing without its process. Who
//     opens the database makes a checkpoint of a replica's copy, up to the journal's end.
package ostropebble

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ostrodb/ostro/cluster/txn"
)

// Errors that callers decide on.
var (
	// ErrLost says that the front end has lost its replicas. Pebble can do nothing
	// without its log: the commit panics with this. Of that commit nobody knows until
	// the database is opened again; those before are there.
	ErrLost = errors.New("pebble: the replicas are lost; open the database again")
	// ErrNotReplicated says that an operation goes past the write-ahead log.
	ErrNotReplicated = errors.New("pebble: this goes past the write-ahead log and would not be replicated")
)

// Follower is a replica's copy as the front end reaches it: a *Copy in the same
// process, or a *Remote.
type Follower interface {
	Persist(ctx context.Context, upTo uint64) (uint64, error)
	Checkpoint(ctx context.Context, upTo uint64, dir string) error
}

// Options say how a database is opened. The zero value is good.
type Options struct {
	// Pebble is as for pebble.Open; FS, WALDir and DisableWAL are overwritten.
	Pebble *pebble.Options
	// Source is the replica whose copy the front end begins with. It must be on
	// this machine: the checkpoint goes into the front end's directory.
	Source int
}

// DB is the front end's Pebble. Everything that goes through the write-ahead log is replicated.
type DB struct {
	*pebble.DB
	writer *writer
}

// Open opens the database that a group's replicas have. The log is the group's, with
// Config.Background; followers are its replicas' copies, in its order; the
// directory is the front end's own, and what an earlier front end left there goes.
func Open(ctx context.Context, log *txn.Log, followers []Follower, dir string, o Options) (*DB, error) {
	if n := log.Group().Replicas(); len(followers) != n || o.Source < 0 || o.Source >= n {
		return nil, fmt.Errorf("pebble: %d copies and source %d for a group of %d", len(followers), o.Source, n)
	}
	dir, err := ownDirectory(dir)
	if err != nil {
		return nil, err
	}
	w, err := newWriter(ctx, log, o.Source, followers)
	if err != nil {
		return nil, err
	}
	db, err := begin(ctx, w, dir, o)
	if err != nil {
		w.close()
		return nil, fmt.Errorf("pebble: open from replica %d: %w", o.Source, err)
	}
	return db, nil
}

// begin makes a checkpoint of the source at the journal's end and opens it.
func begin(ctx context.Context, w *writer, dir string, o Options) (*DB, error) {
	if err := w.followers[o.Source].Checkpoint(ctx, w.tail, dir); err != nil {
		return nil, err
	}
	if err := os.Remove(filepath.Join(dir, positionName)); err != nil {
		return nil, err
	}
	fs, err := newWALFS(dir, vfs.Default, w)
	if err != nil {
		return nil, err
	}
	opts := &pebble.Options{}
	if o.Pebble != nil {
		opts = o.Pebble.Clone()
	}
	opts.FS, opts.WALDir, opts.DisableWAL, opts.ReadOnly = fs, "", false, false
	if opts.Logger == nil {
		opts.Logger = onlyFailures{}
	}
	opts.Logger = final{opts.Logger}
	db, err := pebble.Open(dir, opts)
	if err != nil {
		return nil, err
	}
	return &DB{db, w}, nil
}

// markName marks a directory as a front end's, which may be emptied.
const markName = "OSTRO-FRONT-END"

// ownDirectory makes a directory the front end's and returns the database's within it.
func ownDirectory(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("pebble: make the front end's directory: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("pebble: read the front end's directory: %w", err)
	}
	mark := filepath.Join(dir, markName)
	if _, err := os.Stat(mark); err != nil && len(entries) > 0 {
		return "", fmt.Errorf("pebble: %s is not empty and no front end's; give it a directory of its own", dir)
	}
	if err := os.WriteFile(mark, []byte("What is here is made anew whenever the database is opened.\n"), 0o644); err != nil {
		return "", fmt.Errorf("pebble: mark the front end's directory: %w", err)
	}
	dir, err = filepath.Abs(filepath.Join(dir, "db"))
	if err != nil {
		return "", err
	}
	return dir, os.RemoveAll(dir)
}

// Position is the position of the journal behind all that was acknowledged; copies that are
// there have it. Nothing may be written meanwhile.
func (db *DB) Position() uint64 { return db.writer.tail }

// Close ends the front end's Pebble; replicas keep the database. The log stays the caller's.
func (db *DB) Close() error {
	err := db.DB.Close()
	db.writer.close()
	return err
}

// Checkpoint is Pebble's, behind a flush: Pebble writes an empty manifest into the
// checkpoint of a database that was opened without logs and has flushed nothing since.
func (db *DB) Checkpoint(dir string, o ...pebble.CheckpointOption) error {
	if err := db.Flush(); err != nil {
		return err
	}
	return db.DB.Checkpoint(dir, o...)
}

// Ingest is refused, as are the other ways to add or drop tables: replicas would not.
func (db *DB) Ingest(context.Context, []string) error { return ErrNotReplicated }

// IngestWithStats is refused.
func (db *DB) IngestWithStats(context.Context, []string) (pebble.IngestOperationStats, error) {
	return pebble.IngestOperationStats{}, ErrNotReplicated
}

// IngestExternalFiles is refused.
func (db *DB) IngestExternalFiles(context.Context, []pebble.ExternalFile) (pebble.IngestOperationStats, error) {
	return pebble.IngestOperationStats{}, ErrNotReplicated
}

// IngestAndExcise is refused.
func (db *DB) IngestAndExcise(
	context.Context, []string, []pebble.SharedSSTMeta, []pebble.ExternalFile, pebble.KeyRange,
) (pebble.IngestOperationStats, error) {
	return pebble.IngestOperationStats{}, ErrNotReplicated
}

// Excise is refused.
func (db *DB) Excise(context.Context, pebble.KeyRange) error { return ErrNotReplicated }
