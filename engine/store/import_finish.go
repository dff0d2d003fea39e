package store

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// Finish ends an import after all workers have: large values become visible,
// what was deleted goes, and all of it is as durable as the store promises, what went
// aside after Adopt. After an error it may be called again.
func (im *Importer) Finish(ctx context.Context) error {
	workers, large, err := im.finishing(ctx)
	if err != nil {
		return err
	}
	if err := im.ordinary(workers); err != nil {
		return err
	}
	late := im.removals() // After the last record was taken: later ones cannot hide an older one.
	if err := each(workers, func(w *ImportWorker) error { return w.removeDead(ctx, &w.tombs) }); err != nil {
		return err
	}
	last := workers[0]
	if err := last.removeDead(ctx, &late); err != nil {
		return err
	}
	im.st.imports.remove(im) // From here on the cleaner knows what is dead by itself.
	if err := last.dropUnnamed(ctx, large); err != nil {
		return err
	}
	if err := last.settle(ctx); err != nil {
		return err
	}
	im.st.expectMore(im.aside) // From here on clients may remove what only other logs' recoveries know of.
	im.end()
	im.st.noteBrought()
	return nil
}

// finishing shows the large values that are whole, and gives them with the workers.
func (im *Importer) finishing(ctx context.Context) ([]*ImportWorker, largeValues, error) {
	workers, err := im.someWorkers()
	if err != nil {
		return nil, nil, err
	}
	var large largeValues
	for _, w := range workers {
		large.merge(w.values)
	}
	return workers, large, each(workers, func(w *ImportWorker) error { return w.showLarge(ctx, large) })
}

// someWorkers gives the workers, at least one.
func (im *Importer) someWorkers() ([]*ImportWorker, error) {
	im.mu.Lock()
	none := len(im.workers) == 0
	im.mu.Unlock()
	if none {
		if _, err := im.NewWorker(); err != nil {
			return nil, err
		}
	}
	im.mu.Lock()
	defer im.mu.Unlock()
	if im.over {
		return nil, errImportOver
	}
	return slices.Clone(im.workers), nil
}

// removals gives what others removed so far.
func (im *Importer) removals() graveyard {
	im.mu.Lock()
	defer im.mu.Unlock()
	return graveyard{slices.Clone(im.late.slabs)}
}

// each runs f for all workers at once.
func each(workers []*ImportWorker, f func(*ImportWorker) error) error {
	errs := make([]error, len(workers))
	var wg sync.WaitGroup
	for i, w := range workers {
		wg.Go(func() { errs[i] = f(w) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// removeDead removes the records that are below a remembered tombstone.
func (w *ImportWorker) removeDead(ctx context.Context, g *graveyard) error {
	graves := make([]grave, 0, batchKeys)
	var err error
	g.all(func(one grave) bool {
		if graves = append(graves, one); len(graves) == batchKeys {
			err = w.removeSome(ctx, graves)
			graves = graves[:0]
		}
		return err == nil
	})
	if err != nil {
		return err
	}
	return w.removeSome(ctx, graves)
}

// removeSome is removeDead for up to batchKeys of them.
func (w *ImportWorker) removeSome(ctx context.Context, graves []grave) error {
	var keys [batchKeys]Key
	for i, g := range graves {
		keys[i] = Key{Place: record.PlaceOf(g.table, g.key), Table: g.table, Bytes: g.key, in: w.ss.tables.byID(g.table)}
	}
	for done := 0; done < len(graves); {
		w.ss.Begin()
		w.ss.Prefetch(keys[done:len(graves)])
		st := OK
		for ; done < len(graves); done++ {
			if st = w.removeBelow(&keys[done], graves[done].ver); st != OK {
				break
			}
		}
		w.ss.Seal()
		w.ss.End()
		switch st {
		case OK:
		case Cold:
			if err := w.wait(ctx); err != nil {
				return err
			}
		default:
			return w.ss.Err()
		}
	}
	return ctx.Err()
}

// removeBelow removes k's record if its version is below ver. OK: there is no
// such record any more.
func (w *ImportWorker) removeBelow(k *Key, ver uint64) Status {
	if k.in == nil {
		return OK // Its table is gone, and with it all records.
	}
	for round := 0; ; round++ {
		var pr index.Probe
		old, st := w.ss.find(k, &pr)
		switch {
		case st == NotFound:
			st = w.keepGone(k, ver)
		case st != OK:
		case versionOf(old) < ver:
			st = w.ss.removeAs(k, &pr, old, versionOf(old), ver)
		}
		if st != Conflict {
			return st
		}
		yield(round)
	}
}

// keepGone sees to it that a key which the index has nothing of does not come back with the next start: of what was sent to another node
// and dropped the log may have older versions, and no tombstone.
func (w *ImportWorker) keepGone(k *Key, ver uint64) Status {
	if !w.ss.st.sender.dropped.has(k.Place) {
		return OK
	}
	return w.ss.bury(k, ver, func(record.Address) bool { return true })
}

// settle waits until all that was imported is durable.
func (w *ImportWorker) settle(ctx context.Context) error {
	w.ss.st.log.SealAll()
	return w.ss.waitDurable(ctx, Ticket{w.ss.st.log.Last()})
}
