// Package study is bbolt as a case study: what its failover test and its benchmark run.
package study

import (
	"bytes"
	"context"

	"go.etcd.io/bbolt"

	"github.com/ostrodb/ostro/bench/casestudy"
	ostrobbolt "github.com/ostrodb/ostro/contrib/bbolt"
)

// Study returns the study.
func Study() casestudy.Study {
	return casestudy.Study{
		Name: "bbolt", Open: open, Memory: 16 << 20, Log: 1 << 20,
		Claim: "commits whose pages are replicated and executed by NICs do not wait for busy replicas",
		Paper: []casestudy.PaperFigure{
			{Mode: "naive-polling", What: "average", Times: 1 / (1 - 0.79), Note: "MongoDB, busy replicas: latency up to 79% lower, that is 4.8 times, than with native replication by polling (figure 12); " +
				"the distance from average to p99 up to 81% smaller"},
		},
	}
}

var bucket = []byte("records")

func open(ctx context.Context, f casestudy.Front) (casestudy.Database, error) {
	db, err := ostrobbolt.Open(ctx, f.Log, ostrobbolt.Options{Source: f.Source})
	if err != nil {
		return nil, err
	}
	return database{db}, nil
}

type database struct{ db *ostrobbolt.DB }

func (d database) Commit(pairs ...casestudy.Pair) error {
	return d.db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists(bucket)
		if err != nil {
			return err
		}
		for _, p := range pairs {
			if err := b.Put(p.Key, p.Value); err != nil {
				return err
			}
		}
		return nil
	})
}

func (d database) Get(key []byte) (value []byte, err error) {
	err = d.db.View(func(tx *bbolt.Tx) error {
		if b := tx.Bucket(bucket); b != nil {
			value = bytes.Clone(b.Get(key))
		}
		return nil
	})
	return value, err
}

func (d database) Close() error { return d.db.Close() }
