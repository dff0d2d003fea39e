package txn

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ostrodb/ostro/cluster/group"
)

// WrLock takes a lock for writing, on all replicas. It waits for other writers and
// for readers of every replica. It is a gCAS on all of them; where it succeeds on
// some only, it is undone there and tried again after a while. Who takes several
// takes them in ascending order, as Update does.
func (l *Log) WrLock(ctx context.Context, o Owner, lock int) error {
	if err := l.checkLock(lock); err != nil {
		return err
	}
	if o == 0 {
		return fmt.Errorf("%w: owner 0 is nobody", ErrRefused)
	}
	if err := l.enterLock(ctx, lock); err != nil {
		return err
	}
	err := l.acquire(ctx, l.layout.lock(lock), writerWord(l.epoch, o))
	if err != nil {
		l.writers.leave(lock)
		return fmt.Errorf("txn: lock %d for writing: %w", lock, err)
	}
	l.writers.own(lock, o)
	return nil
}

// enterLock waits for other writers of this client, as long as there is hope.
func (l *Log) enterLock(ctx context.Context, lock int) error {
	e := l.writers.join(lock)
	select {
	case e.turn <- struct{}{}:
		return nil
	default:
	}
	var err error
	select {
	case e.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-l.failed:
		err = l.Err()
	case <-l.group.Broken():
		err = l.Err()
	}
	l.writers.forget(lock)
	return err
}

// WrUnlock releases a lock that the owner holds for writing.
func (l *Log) WrUnlock(ctx context.Context, o Owner, lock int) error {
	if err := l.checkLock(lock); err != nil {
		return err
	}
	if !l.writers.disown(lock, o) {
		return fmt.Errorf("%w: lock %d is not owner %d's", ErrNotHeld, lock, o)
	}
	defer l.writers.leave(lock)
	mine, all := writerWord(l.epoch, o), group.First(l.group.Replicas())
	r, err := l.swap(ctx, l.layout.lock(lock), mine, freeWord(l.epoch), all)
	if err == nil && r.Swapped(mine) != all {
		err = fmt.Errorf("%w: its words are %x", ErrNotHeld, r.Found[:l.group.Replicas()])
	}
	if err != nil {
		return fmt.Errorf("txn: release lock %d: %w", lock, err)
	}
	return nil
}

// NewOwner gives out an owner that nobody else of this log has.
func (l *Log) NewOwner() Owner {
	if o := l.lastID.Add(1); o != 0 {
		return Owner(o)
	}
	return l.NewOwner() // Zero is nobody.
}

// Break releases all locks that an owner holds for writing. The caller must know that
// the owner is gone and does nothing any more. Locks of another client's owners,
// and readers' locks of a replica that died, are broken by Initialize.
func (l *Log) Break(ctx context.Context, o Owner) error {
	var errs []error
	for _, lock := range l.writers.heldBy(o) {
		errs = append(errs, l.WrUnlock(ctx, o, lock))
	}
	return errors.Join(errs...)
}

func (l *Log) checkLock(lock int) error {
	if lock < 0 || lock >= l.layout.locks {
		return fmt.Errorf("%w: lock %d of %d", ErrRefused, lock, l.layout.locks)
	}
	return nil
}

// swap is gCAS and its end. Once issued it is waited for, whatever becomes of ctx:
// its outcome must be known.
func (l *Log) swap(ctx context.Context, off, old, new uint64, m group.Map) (group.Result, error) {
	if m == 0 {
		return group.Result{}, nil
	}
	p, err := l.group.CAS(context.WithoutCancel(ctx), off, old, new, m)
	if err != nil {
		return group.Result{}, err
	}
	return p.Wait(context.WithoutCancel(ctx))
}

// patientTries is how often a writer tries before it keeps new readers out.
const patientTries = 3

// acquire makes a word mine on all replicas.
func (l *Log) acquire(ctx context.Context, off, mine uint64) error {
	var marked group.Map // replicas whose word says that we wait
	var b backoff
	for {
		found, swapped, err := l.try(ctx, off, mine, marked)
		if err != nil || swapped == group.First(l.group.Replicas()) {
			return err
		}
		if err := errors.Join(l.hopeless(), l.sameEpoch(found)); err != nil {
			return errors.Join(err, l.unmark(ctx, off, marked))
		}
		if b.tries >= patientTries {
			if marked, err = l.mark(ctx, off, found, swapped, marked); err != nil {
				return err
			}
		}
		if err := b.wait(ctx); err != nil {
			return errors.Join(err, l.unmark(ctx, off, marked))
		}
	}
}

// sameEpoch tells whether all words are of the log's epoch. Others are not its to wait
// for, nor to be marked: nobody would take the mark away.
func (l *Log) sameEpoch(found [group.MaxReplicas]uint64) error {
	for i := range l.group.Replicas() {
		if !sameGeneration(found[i], l.epoch) {
			return fmt.Errorf("%w: the word of replica %d is %x, not of epoch %d", ErrNotHeld, i, found[i], l.epoch>>32)
		}
	}
	return nil
}

// try is one attempt: those that are marked hold another word. What succeeded in part is undone.
func (l *Log) try(ctx context.Context, off, mine uint64, marked group.Map) (found [group.MaxReplicas]uint64, swapped group.Map, err error) {
	all, free := group.First(l.group.Replicas()), freeWord(l.epoch)
	plain, err := l.swap(ctx, off, free, mine, all&^marked)
	if err != nil {
		return found, 0, err
	}
	held, err := l.swap(ctx, off, free|waiting, mine, marked)
	if err != nil {
		return found, 0, err
	}
	for i := range found {
		found[i] = plain.Found[i] | held.Found[i]
	}
	swapped = plain.Swapped(free) | held.Swapped(free|waiting)
	if swapped == all {
		return found, swapped, nil
	}
	if _, err := l.swap(ctx, off, mine, free, plain.Swapped(free)); err != nil {
		return found, swapped, err
	}
	_, err = l.swap(ctx, off, mine, free|waiting, held.Swapped(free|waiting))
	return found, swapped, err
}

// mark keeps new readers from the replicas where there were some.
func (l *Log) mark(ctx context.Context, off uint64, found [group.MaxReplicas]uint64, swapped, marked group.Map) (group.Map, error) {
	for i := range l.group.Replicas() {
		one := group.Map(1) << i
		if (swapped|marked)&one != 0 || shut(found[i]) {
			continue
		}
		r, err := l.swap(ctx, off, found[i], found[i]|waiting, one)
		if err != nil {
			return marked, err
		}
		marked |= r.Swapped(found[i])
	}
	return marked, nil
}

// unmark lets readers in again.
func (l *Log) unmark(ctx context.Context, off uint64, marked group.Map) error {
	for i := range l.group.Replicas() {
		if !marked.Has(i) {
			continue
		}
		err := l.change(ctx, off, i, freeWord(l.epoch)|waiting, func(word uint64) (uint64, error) {
			return word &^ waiting, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// writers keeps this client's writers apart, so that they need not meet on the replicas.
type writers struct {
	mu *sync.Mutex
	at map[int]*writer
}

type writer struct {
	turn  mutex
	users int
	owner Owner
}

func newWriters() writers { return writers{mu: &sync.Mutex{}, at: map[int]*writer{}} }

// join counts a user of a lock. Whoever gets the turn leaves, whoever does not forgets.
func (w writers) join(lock int) *writer {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.at[lock]
	if e == nil {
		e = &writer{turn: newMutex()}
		w.at[lock] = e
	}
	e.users++
	return e
}

func (w writers) leave(lock int) {
	w.mu.Lock()
	e := w.at[lock]
	w.mu.Unlock()
	e.turn.unlock()
	w.forget(lock)
}

func (w writers) forget(lock int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e := w.at[lock]; e.users > 1 {
		e.users--
	} else {
		delete(w.at, lock)
	}
}

func (w writers) own(lock int, o Owner) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at[lock].owner = o
}

// disown takes the lock from its owner, and tells whether it was that one.
func (w writers) disown(lock int, o Owner) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.at[lock]
	if e == nil || e.owner != o || o == 0 {
		return false
	}
	e.owner = 0
	return true
}

func (w writers) heldBy(o Owner) (locks []int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for lock, e := range w.at {
		if e.owner == o {
			locks = append(locks, lock)
		}
	}
	return locks
}
