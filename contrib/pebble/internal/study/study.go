// Package study is Pebble as a case study: what its failover test and its benchmark run.
package study

import (
	"bytes"
	"context"
	"errors"
	"net"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"

	"github.com/ostrodb/ostro/bench/casestudy"
	"github.com/ostrodb/ostro/cluster/txn"
	ostropebble "github.com/ostrodb/ostro/contrib/pebble"
)

// Study returns the study.
func Study() casestudy.Study {
	return casestudy.Study{
		Name: "Pebble", Replica: replica, Open: open, Memory: 4 << 20, Log: 1 << 20,
		Claim: "updates of a database whose log is replicated by NICs do not wait for busy replicas",
		Paper: []casestudy.PaperFigure{
			{Mode: "naive-events", What: "tail", Times: 5.7, Note: "RocksDB, busy replicas: tail 5.7 times lower than naive-events (figure 11)"},
			{Mode: "naive-polling", What: "tail", Times: 24.2, Note: "RocksDB, busy replicas: tail 24.2 times lower than naive-polling (figure 11)"},
		},
	}
}

// replica keeps a copy that follows the journal.
func replica(r casestudy.Replica) error {
	reader := txn.NewReader(r.Group, r.Memory)
	area := func(ctx context.Context, show func([]byte) error) error { return reader.View(ctx, nil, show) }
	c, err := ostropebble.OpenCopy(filepath.Join(r.Dir, "copy"), area, ostropebble.CopyOptions{})
	if err != nil {
		return err
	}
	l, err := net.Listen("unix", r.Socket)
	if err != nil {
		return err
	}
	go func() { _ = ostropebble.Serve(l, c) }()
	return nil
}

func open(ctx context.Context, f casestudy.Front) (casestudy.Database, error) {
	var d database
	var followers []ostropebble.Follower
	for _, path := range f.Sockets {
		r, err := ostropebble.Dial("unix", path)
		if err != nil {
			return nil, errors.Join(err, d.hangUp())
		}
		d.copies, followers = append(d.copies, r), append(followers, r)
	}
	var err error
	if d.db, err = ostropebble.Open(ctx, f.Log, followers, f.Dir, ostropebble.Options{Source: f.Source}); err != nil {
		return nil, errors.Join(err, d.hangUp())
	}
	return d, nil
}

type database struct {
	db     *ostropebble.DB
	copies []*ostropebble.Remote
}

func (d database) hangUp() error {
	var errs []error
	for _, r := range d.copies {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}

func (d database) Commit(pairs ...casestudy.Pair) error {
	b := d.db.NewBatch()
	for _, p := range pairs {
		if err := b.Set(p.Key, p.Value, nil); err != nil {
			return err
		}
	}
	return b.Commit(pebble.Sync)
}

func (d database) Get(key []byte) ([]byte, error) {
	value, done, err := d.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return bytes.Clone(value), done.Close()
}

func (d database) Close() error { return errors.Join(d.db.Close(), d.hangUp()) }
