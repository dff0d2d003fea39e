package migrate

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/background"
)

// gathers is how long what operations wait for gathers after a batch of several has come. One who misses key after key, alone, waits for nobody. A batch costs
// both nodes as much as fifteen operations of clients, whatever it brings: one after the other, of a few keys each, they took a third of
// what a migration takes of the cores, and where clients leave little of them that made a queue of all. What makes a batch already waits for no more.
const gathers = time.Millisecond

// answerAll brings what operations wait for. One batch is under way at a time, and the next one gathers. What an answer had no room for
// is asked for again at once, before what was wanted later. It is for a goroutine of its own.
func (p *pulls) answerAll() {
	background.Prompt()
	for failed := false; ; {
		batch := p.m.priority.take(p.ctx)
		if batch == nil {
			return
		}
		p.single.Lock()
		err := p.fetch(batch)
		p.single.Unlock()
		if p.m.priority.putBack(batch) {
			p.answers.Go(p.answerApart)
		}
		if failed = p.mayAskAgain(err, failed); p.ctx.Err() != nil {
			return
		}
		if len(batch) > 1 && p.m.priority.gathers() {
			background.Nap(gathers)
		}
	}
}

// answerApart asks again and again for what the source could not read, each alone, until nothing is left of that. A disk may take long to
// say that it cannot: so that has a connection of its own.
func (p *pulls) answerApart() {
	var one *puller
	for failed := false; ; {
		pauseFor(p.ctx, retryPause)
		batch := p.m.priority.takeApart()
		if len(batch) == 0 || p.ctx.Err() != nil {
			break
		}
		err := p.openApart(&one)
		for i := 0; err == nil && i < len(batch); i++ {
			if w := batch[i]; p.m.arrival.Awaits(w.key) {
				err = p.askAlone(one, w)
			} else {
				p.m.priority.granted(batch[i : i+1])
			}
		}
		p.m.priority.putApart(batch)
		failed = p.mayAskAgain(err, failed)
	}
	if one != nil {
		one.close()
	}
}

// openApart makes what answerApart needs, once. It is not for who carries out the migration, whose lines are not touched.
func (p *pulls) openApart(one **puller) error {
	if *one != nil {
		return nil
	}
	line, err := p.m.o.Peers.Line(p.m.want.Source)
	if err != nil {
		return err
	}
	w, err := p.m.arrival.NewWorker()
	if err != nil {
		return errors.Join(err, line.Close())
	}
	*one = &puller{line: line, worker: w}
	return nil
}

// now brings keys for one operation, one after the other and without looking at what others wait for: what priority pulls
// are compared with.
func (p *pulls) now(list []store.ArrivingKey, done func(error)) {
	for _, k := range list {
		one := &wish{key: k}
		for failed := false; !one.here; {
			p.single.Lock()
			err := p.fetch([]*wish{one})
			p.single.Unlock()
			if failed = p.mayAskAgain(err, failed); p.ctx.Err() != nil {
				return // Who gives the arrival up, or ends it, lets the operation go.
			}
			if one.apart {
				pauseFor(p.ctx, retryPause)
			}
		}
	}
	done(nil)
}

// mayAskAgain waits a moment if err says that the source was asked in vain, and tells of it unless it was so the last time.
func (p *pulls) mayAskAgain(err error, failed bool) bool {
	if err == nil || p.ctx.Err() != nil {
		return false
	}
	if !failed {
		p.m.log.Warn("what operations wait for did not come; it is asked for again", "why", err)
	}
	pauseFor(p.ctx, retryPause)
	return true
}

// fetch asks once for what is missing of a batch, and lets go who waits for what came, or is known not to be. If the source cannot read
// a record of them, each is asked for alone: that record holds up those only who want it. single is held.
func (p *pulls) fetch(batch []*wish) error {
	isMissing := func(i int) bool { return p.m.arrival.Awaits(batch[i].key) }
	p.m.priority.granted(parted(batch, func(i int) bool { return !isMissing(i) })) // They came meanwhile. Only here keys are settled by asking.
	together := parted(batch, func(i int) bool { return !batch[i].here && !batch[i].apart })
	alone := parted(batch, func(i int) bool { return !batch[i].here && batch[i].apart })
	switch err := p.ask(p.urgent, together); {
	case errors.Is(err, errUnreadable):
		alone = append(parted(together, func(i int) bool { return !together[i].here }), alone...)
	case err != nil:
		return err
	}
	for _, w := range alone {
		if err := p.askAlone(p.urgent, w); err != nil {
			return err
		}
	}
	return nil
}

// askAlone asks for one that the source may be unable to read.
func (p *pulls) askAlone(one *puller, w *wish) error {
	err := p.ask(one, []*wish{w})
	if !errors.Is(err, errUnreadable) {
		return err
	}
	if !w.apart {
		p.m.log.Warn("the source cannot read a record that operations wait for; it is asked for again and again", "why", err)
	}
	w.apart = true
	return nil
}

// ask asks for keys together. What the source may have in memory comes first: it waits for no disk.
func (p *pulls) ask(one *puller, list []*wish) error {
	if len(list) == 0 {
		return nil
	}
	var cold, rest []*wish
	for _, w := range list {
		if one.worker.RefersTo(w.key.Place) {
			cold = append(cold, w.begin(true))
		} else {
			rest = append(rest, w.begin(false))
		}
	}
	p.m.asks.Add(1)
	p.count(cold)
	p.count(rest)
	if err := p.fetchKeys(one, rest); err != nil {
		return err
	}
	return p.fetchCold(one, cold)
}

// count counts what is asked for, each key once.
func (p *pulls) count(list []*wish) {
	for _, w := range list {
		if !w.asked {
			w.asked = true
			p.m.asked.Add(1)
		}
	}
}

// fetchKeys asks for keys of which nothing is known yet.
func (p *pulls) fetchKeys(one *puller, list []*wish) error {
	if len(list) == 0 {
		return nil
	}
	one.bulk = one.bulk[:0]
	for _, w := range list {
		one.bulk = appendKey(one.bulk, &w.key)
	}
	unsent, err := p.pullUrgently(p.ctx, one, methodKeys, one.bulk, len(list), list[0].at)
	if err != nil {
		return err
	}
	p.answered(list, unsent)
	return nil
}

// fetchCold asks for keys of which there may be a cold record.
func (p *pulls) fetchCold(one *puller, list []*wish) error {
	if err := p.fetchTier(one, list); err != nil {
		return err
	}
	list = parted(list, func(i int) bool { return !list[i].here })
	if len(list) == 0 {
		return nil
	}
	unsent, err := p.resolveSome(p.ctx, one, placesOf(list), list[0].at)
	if err != nil {
		return err
	}
	p.answered(list, unsent)
	return nil
}

// fetchTier brings those that the shared tier has.
//
// Invariant: only a key whose range was pulled before its records are listed is settled by what lies there. Until then those that are
// known of may be of other keys with the same known bits, and its own is on its way: only the source knows of all.
func (p *pulls) fetchTier(one *puller, list []*wish) error {
	list = parted(list, func(i int) bool { return p.m.arrival.HasPulled(list[i].key.Place) })
	if len(list) == 0 {
		return nil
	}
	left, err := p.readTier(p.ctx, one, placesOf(list))
	if err != nil {
		return err
	}
	p.came(parted(list, func(i int) bool { return !slices.Contains(left, list[i].key.Place) }))
	return nil
}

// answered takes note of what of a list was sent.
func (p *pulls) answered(list []*wish, unsent store.Unsent) {
	list[0].at = unsent.Next
	p.came(parted(list, func(i int) bool { return !unsent.Has(i) }))
}

// came lets go who waits for what came.
func (p *pulls) came(list []*wish) {
	for _, w := range list {
		p.m.arrival.Settle(w.key)
	}
	p.m.priority.granted(list)
}

// pullUrgently makes a call for what operations wait for, n keys or places, and imports what comes.
func (p *pulls) pullUrgently(ctx context.Context, one *puller, method string, bulk []byte, n int, at store.PullCursor) (store.Unsent, error) {
	ask, got := keys{ID: p.m.id, Cursor: at}, gave{}
	entries, err := one.call(ctx, method, ask.encode(), bulk, func(head []byte) error { return got.decode(head, n, at) })
	if err != nil {
		return store.Unsent{}, err
	}
	if err := one.worker.Import(ctx, entries); err != nil {
		return store.Unsent{}, err
	}
	p.m.bytes.Add(int64(len(entries)))
	p.m.records.Add(int64(got.Records))
	return got.Unsent, nil
}

func placesOf(list []*wish) (places []record.Place) {
	for _, w := range list {
		places = append(places, w.key.Place)
	}
	return places
}

// parted is those of a list whose numbers are of a kind.
func parted[T any](list []T, kind func(i int) bool) (some []T) {
	for i, one := range list {
		if kind(i) {
			some = append(some, one)
		}
	}
	return some
}
