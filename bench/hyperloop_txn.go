package bench

import (
	"context"

	"github.com/ostrodb/ostro/cluster/group"
	"github.com/ostrodb/ostro/cluster/txn"
)

func (c hyperCase) transactional() bool { return c.Primitive == txnAppend || c.Primitive == txnExecute }

// blank zeroes replicas' memories, for transactions refuse any that is not theirs.
func (s *hyperScene) blank(ctx context.Context, replicas int) error {
	g, err := s.open(ctx, group.Spec{MaxWrite: maxHyperBytes, Window: 4}, replicas)
	if err != nil {
		return err
	}
	defer g.Close()
	d := hyperDriver{g: g}
	zeros := make([]byte, maxHyperBytes)
	for off := uint64(0); off < memoryBytes; off += maxHyperBytes {
		if err := d.write(ctx, off, zeros); err != nil {
			return err
		}
	}
	return nil
}

// openLog makes a log of the group's memory. Records that are only appended are
// executed in the background, as the paper's RocksDB does.
func (d *hyperDriver) openLog(ctx context.Context) (err error) {
	d.log, err = txn.Initialize(ctx, d.g, txn.Config{LogBytes: memoryBytes / 4, Locks: 1, Background: d.c.Primitive == txnAppend})
	return err
}

// transaction appends a record, durably on all replicas, and perhaps executes it.
func (d *hyperDriver) transaction(ctx context.Context) error {
	op := d.done
	d.done++
	if err := d.log.AppendWait(ctx, txn.Entry{Offset: d.place(op), Data: d.stamp(op)}); err != nil {
		return err
	}
	if d.c.Primitive == txnAppend {
		return nil
	}
	_, err := d.log.ExecuteAndAdvance(ctx)
	return err
}
