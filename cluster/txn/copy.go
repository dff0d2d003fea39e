package txn

import (
	"context"

	"github.com/ostrodb/ostro/cluster/group"
)

// exclude has replicas that are blank, stale, damaged or the rest of an earlier copy say that they
// are incomplete: what is done to all from now on makes nonsense of their memory.
func (r *recovery) exclude(ctx context.Context) error {
	for _, p := range r.replicas {
		if p.current {
			continue
		}
		r.others |= p.one()
		if err := r.swapAll(ctx, "the magic", magicAt, p.control.magic, incomplete, p.one()); err != nil {
			return err
		}
	}
	return nil
}

// copyToOthers gives them everything; then they are members. What is read from a current
// replica is written to all: there it changes nothing.
func (r *recovery) copyToOthers(ctx context.Context) error {
	if r.others == 0 {
		return nil
	}
	if err := r.copyData(ctx, r.far.index); err != nil {
		return err
	}
	return r.admit(ctx, r.others)
}

// admit makes members of incomplete replicas that have all data and an empty log. Those
// that are members already have the same words.
func (r *recovery) admit(ctx context.Context, others group.Map) error {
	if err := r.write(ctx, wordBytes, r.layout.header()); err != nil {
		return err
	}
	words := control{epoch: r.epoch, next: r.epoch, head: r.end}
	if err := r.write(ctx, epochAt, words.bytes()); err != nil {
		return err
	}
	return r.swapAll(ctx, "the magic", magicAt, incomplete, magic, others)
}

// copyData empties the logs, for what is in them may have positions of the time to come,
// and copies the data area, in steps.
func (r *recovery) copyData(ctx context.Context, from int) error {
	if err := r.write(ctx, r.layout.log(), make([]byte, r.layout.logBytes)); err != nil {
		return err
	}
	total := r.layout.dataBytes()
	buf := make([]byte, copyStep)
	var last *group.Pending
	for at := uint64(0); at < total; {
		step := buf[:min(copyStep, total-at)]
		if err := r.group.Read(ctx, from, r.layout.data()+at, step); err != nil {
			return err
		}
		var err error
		if last, err = writeAll(ctx, r.group, r.layout.data()+at, step); err != nil {
			return err
		}
		at += uint64(len(step))
		if r.conf.Progress != nil {
			r.conf.Progress(at, total)
		}
	}
	_, err := last.Wait(ctx)
	return err
}

const copyStep = 256 << 10
