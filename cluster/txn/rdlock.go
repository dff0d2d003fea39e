package txn

import (
	"context"
	"errors"
	"fmt"

	"github.com/ostrodb/ostro/cluster/group"
)

// RdLock takes a lock for reading, on one replica. Several readers can have it;
// writers are kept out, and it waits for a writer that has it or waits for it.
func (l *Log) RdLock(ctx context.Context, replica, lock int) error {
	if err := l.checkRead(replica, lock); err != nil {
		return err
	}
	var b backoff
	err := l.change(ctx, l.layout.lock(lock), replica, freeWord(l.epoch), func(word uint64) (uint64, error) {
		if shut(word) {
			return word, errors.Join(l.hopeless(), b.wait(ctx))
		}
		return word + 1, nil
	})
	if err != nil {
		return fmt.Errorf("txn: lock %d of replica %d for reading: %w", lock, replica, err)
	}
	return nil
}

// RdUnlock releases a lock that RdLock took.
func (l *Log) RdUnlock(ctx context.Context, replica, lock int) error {
	if err := l.checkRead(replica, lock); err != nil {
		return err
	}
	err := l.change(ctx, l.layout.lock(lock), replica, freeWord(l.epoch)+1, func(word uint64) (uint64, error) {
		if word&writing != 0 || readers(word) == 0 {
			return 0, fmt.Errorf("%w: its word is %x", ErrNotHeld, word)
		}
		return word - 1, nil
	})
	if err != nil {
		return fmt.Errorf("txn: release lock %d of replica %d: %w", lock, replica, err)
	}
	return nil
}

func (l *Log) checkRead(replica, lock int) error {
	if replica < 0 || replica >= l.group.Replicas() {
		return fmt.Errorf("%w: replica %d of %d", ErrRefused, replica, l.group.Replicas())
	}
	return l.checkLock(lock)
}

// change makes of one replica's word what next says, beginning with a guess of what is
// there. A next that returns the word itself wants to see it again.
func (l *Log) change(ctx context.Context, off uint64, replica int, guess uint64, next func(uint64) (uint64, error)) error {
	for {
		to, err := next(guess)
		if err != nil {
			return err
		}
		r, err := l.swap(ctx, off, guess, to, group.Map(1)<<replica)
		if err != nil {
			return err
		}
		found := r.Found[replica]
		if !sameGeneration(found, l.epoch) {
			return fmt.Errorf("%w: the word is %x, not of epoch %d", ErrNotHeld, found, l.epoch>>32)
		}
		if found == guess && to != guess {
			return nil
		}
		guess = found
	}
}

// Read copies bytes of one replica's data area, by a one-sided READ. It takes no
// lock: see View.
func (l *Log) Read(ctx context.Context, replica int, off uint64, buf []byte) error {
	if n := uint64(len(buf)); off > l.DataBytes() || n > l.DataBytes()-off {
		return fmt.Errorf("%w: read %d bytes at %d of %d", ErrRefused, n, off, l.DataBytes())
	}
	if len(buf) == 0 {
		return nil
	}
	return l.group.Read(ctx, replica, l.layout.data()+off, buf)
}
