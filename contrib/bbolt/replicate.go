package ostrobbolt

import (
	"errors"
	"fmt"

	"github.com/ostrodb/ostro/cluster/txn"
)

// leastBytes of an entry are never cut: a meta page's.
const leastBytes = pageHeader + metaBytes

// mostBytes is how much of a commit goes into one record; larger ones are several.
const mostBytes = 1 << 20

// replicate brings what the last commit has written to all replicas.
func (db *DB) replicate() error {
	spans, err := db.tracker.advance(db.local.bytes)
	if err != nil {
		return fmt.Errorf("find what transaction %d has written: %w", db.tracker.now.tx, err)
	}
	entries := db.entries(spans)
	for {
		err := db.send(cut(entries, db.most))
		if !errors.Is(err, txn.ErrTooLarge) || db.most <= leastBytes {
			return err
		}
		// The group's log is smaller than that. What went ahead may go once more.
		db.most /= 2
	}
}

// send appends records. Pages that do not fit into one with the meta page go
// ahead, without the lock: no version of the database that a reader can have
// refers to them. Records are executed in order, so they are in place when
// the meta page is.
func (db *DB) send(records [][]txn.Entry) error {
	for _, ahead := range records[:len(records)-1] {
		if _, err := db.log.Append(db.ctx, ahead...); err != nil {
			return err
		}
	}
	return db.log.Update(db.ctx, []int{db.lock}, func(tx *txn.Tx) error {
		for _, e := range records[len(records)-1] {
			tx.Write(e.Offset, e.Data)
		}
		return nil
	})
}

// entries are spans of pages, and the meta page last: of a replica's page only its
// head, for the rest is zeros since the database was made.
func (db *DB) entries(spans []span) []txn.Entry {
	size := db.tracker.now.pageBytes
	entries := make([]txn.Entry, 0, len(spans)+1)
	for _, s := range spans {
		entries = append(entries, db.entry(s.first*size, s.pages*size))
	}
	return append(entries, db.entry(db.tracker.now.slot()*size, leastBytes))
}

func (db *DB) entry(off, n uint64) txn.Entry {
	return txn.Entry{Offset: off, Data: db.local.bytes[off : off+n]}
}

// cut makes records of entries that have up to so many bytes, cutting those that are
// larger. The last entry is whole in the last record.
func cut(entries []txn.Entry, most int) [][]txn.Entry {
	records, room := [][]txn.Entry{nil}, most
	for _, e := range entries {
		for len(e.Data) > 0 {
			if room < min(len(e.Data), leastBytes) {
				records, room = append(records, nil), most
			}
			n, last := min(len(e.Data), room), len(records)-1
			records[last] = append(records[last], txn.Entry{Offset: e.Offset, Data: e.Data[:n]})
			e.Offset, e.Data, room = e.Offset+uint64(n), e.Data[n:], room-n
		}
	}
	return records
}
