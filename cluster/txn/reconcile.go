package txn

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"

	"github.com/ostrodb/ostro/cluster/group"
)

// level gives current replicas the records that they lack and another has. Those
// were not acknowledged, or all would have them; but they may be executed then,
// for none was refused either. It writes the same bytes to all: where they are
// already, nothing changes.
func (r *recovery) level(ctx context.Context) error {
	far, least := r.far, r.least
	r.end = far.end()
	if r.end-least.control.head > r.layout.logBytes {
		return fmt.Errorf("%w: heads are %d bytes apart, and the log has %d", ErrDiverged, r.end-least.control.head, r.layout.logBytes)
	}
	whole := append(bytes.Clone(least.log), far.log[least.end()-far.control.head:]...)
	for _, p := range r.current() {
		if want := whole[p.control.head-least.control.head:][:len(p.log)]; !bytes.Equal(p.log, want) {
			return fmt.Errorf("%w: replicas %d and %d have different records", ErrDiverged, p.index, far.index)
		}
	}
	if err := r.send(ctx, whole, least.control.head, r.shortest()); err != nil {
		return err
	}
	return r.parseRecords(whole, least.control.head)
}

// shortest is the position up to which all current replicas have the log.
func (r *recovery) shortest() uint64 {
	at := r.end
	for _, p := range r.current() {
		at = min(at, p.end())
	}
	return at
}

// send writes the part of the log from a position on to all replicas.
func (r *recovery) send(ctx context.Context, whole []byte, base, from uint64) error {
	rest := whole[from-base:]
	for _, s := range r.layout.ring(from, uint64(len(rest))) {
		if err := r.write(ctx, s.off, rest[:s.n]); err != nil {
			return err
		}
		rest = rest[s.n:]
	}
	return nil
}

func (r *recovery) parseRecords(whole []byte, pos uint64) error {
	for len(whole) > 0 {
		n := sizeAt(whole, pos, r.layout)
		_, moves, ok := decode(whole[:n], pos, r.layout)
		if !ok {
			return fmt.Errorf("%w: no record at %d", ErrDiverged, pos)
		}
		r.records = append(r.records, moves)
		whole, pos = whole[n:], pos+n
	}
	return nil
}

// raise begins a new epoch on the current replicas: first all know of it, then
// it is theirs. Whoever was left out of it is stale from the second step on. Its number is
// above that of any epoch that somebody who is not here may have begun.
func (r *recovery) raise(ctx context.Context) error {
	r.epoch = newEpoch(r.latest)
	for _, p := range r.current() {
		if err := r.swapAll(ctx, "next", nextAt, p.control.next, r.epoch, p.one()); err != nil {
			return err
		}
	}
	for _, p := range r.current() {
		if err := r.swapAll(ctx, "the epoch", epochAt, p.control.epoch, r.epoch, p.one()); err != nil {
			return err
		}
	}
	return nil
}

// redo executes all records, from the least head on, on all. Then the heads leap.
func (r *recovery) redo(ctx context.Context) error {
	for _, moves := range r.records {
		if err := copyMoves(ctx, r.group, r.layout, moves); err != nil {
			return err
		}
	}
	for _, p := range r.current() {
		if err := r.swapAll(ctx, "the head", headAt, p.control.head, r.end, p.one()); err != nil {
			return err
		}
	}
	return r.leap(ctx)
}

// freeLocks makes every lock of every replica free in the new epoch. Readers of a
// replica may be at a word even now: it takes a compare-and-swap, perhaps several.
func (r *recovery) freeLocks(ctx context.Context) error {
	free := freeWord(r.epoch)
	for _, p := range r.replicas {
		words := make([]byte, r.layout.locks*wordBytes)
		if err := r.group.Read(ctx, p.index, locksAt, words); err != nil {
			return err
		}
		var flying []*group.Pending
		var olds []uint64
		for i := range r.layout.locks {
			old := binary.LittleEndian.Uint64(words[i*wordBytes:])
			q, err := r.group.CAS(ctx, r.layout.lock(i), old, free, p.one())
			if err != nil {
				return err
			}
			flying, olds = append(flying, q), append(olds, old)
		}
		for i, q := range flying {
			if err := r.freeLock(ctx, p, i, olds[i], q); err != nil {
				return err
			}
		}
	}
	return nil
}

// freeLock tries again until a word is free.
func (r *recovery) freeLock(ctx context.Context, p *replica, lock int, old uint64, q *group.Pending) error {
	for {
		res, err := q.Wait(ctx)
		if err != nil || res.Found[p.index] == old {
			return err
		}
		old = res.Found[p.index]
		if q, err = r.group.CAS(ctx, r.layout.lock(lock), old, freeWord(r.epoch), p.one()); err != nil {
			return err
		}
	}
}
