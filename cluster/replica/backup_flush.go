package replica

import (
	"errors"
	"io/fs"
	"sync"
	"time"

	"github.com/ostrodb/ostro/internal/background"
)

// queue is replicas that wait for the flusher.
type queue struct {
	mu   sync.Mutex
	list []*replica
}

func (q *queue) push(r *replica) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.list = append(q.list, r)
}

func (q *queue) pop() *replica {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.list) == 0 {
		return nil
	}
	r := q.list[0]
	q.list = q.list[1:]
	return r
}

// flushers is how many replicas are flushed at a time: one computes while the other
// waits for the disk.
const flushers = 2

// flushRetry is the pause after a flush that failed, as it does while the disk is full.
const flushRetry = time.Second

// flushLook is how often a flusher that waits for a recovery's end looks.
const flushLook = 50 * time.Millisecond

func (b *Backup) toFlush(r *replica) {
	b.waiting.push(r)
	b.wakeFlusher()
}

func (b *Backup) wakeFlusher() {
	select {
	case b.flushes <- struct{}{}:
	default:
	}
}

// flushAll moves closed replicas to files and zeroes buffers, quietly, while the
// backup lives. What it cannot flush stays in its buffer.
func (b *Backup) flushAll() {
	background.Quiet()
	for {
		select {
		case <-b.ctx.Done():
			return
		case <-b.flushes:
		}
		if err := b.flushSome(); err != nil {
			b.count.flushErrors.Add(1)
			b.o.Log.Error("closed replicas stay in memory: they cannot be written to disk", "dir", b.o.Dir, "error", err)
			b.pause(flushRetry)
			b.wakeFlusher()
		}
	}
}

// pause waits, unless the backup is closed meanwhile.
func (b *Backup) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-b.ctx.Done():
	}
}

// flushSome goes on until there is nothing to do or something fails. It is quiet
// while few buffers wait; when they get scarce others wait for it, and it works
// like anybody.
func (b *Backup) flushSome() error {
	for b.ctx.Err() == nil {
		if !b.mayFlush() {
			b.pause(flushLook)
			continue
		}
		var more bool
		var err error
		next := func() { more, err = b.flushNext() }
		if b.pool.pressed() {
			background.Aloud(next)
		} else {
			next()
		}
		if err != nil {
			return err
		}
		if !more {
			background.Aloud(b.savings.put)
			return nil
		}
	}
	return nil
}

// mayFlush tells whether it is the time to. During a recovery it is not as long as
// there are buffers: heirs need the cores, and no more waits in buffers
// than the disk can take when the power fails.
func (b *Backup) mayFlush() bool { return !b.recovering() || b.pool.scarce() }

// spareBuffers is how many are made ahead, one after the other: who opens a replica when there is none waits for it.
const spareBuffers = 8

// flushNext does the next thing to do, and tells whether there was any. Dirty
// buffers come first: an open waits for them, and nothing for a flush. New ones come last.
func (b *Backup) flushNext() (more bool, err error) {
	unrest := b.pool.unrest()
	if unrest == 0 {
		if more, err := b.pool.sweep(b.breathe); more || err != nil {
			return more, err
		}
	}
	r := b.waiting.pop()
	switch {
	case r == nil && unrest == 0:
		return b.pool.replenish(max(b.o.Ready, spareBuffers), b.breathe), nil
	case r == nil:
		time.AfterFunc(unrest, b.wakeFlusher)
		return false, nil
	}
	if err := b.flush(r); err != nil {
		b.waiting.push(r)
		return false, err
	}
	return true, nil
}

// flush moves one closed replica to a file. Locks of those who serve are taken
// on another thread, for this one may be off its core for long.
func (b *Backup) flush(r *replica) (err error) {
	var h held
	background.Aloud(func() { h, err = r.pin() })
	defer h.release()
	begin := time.Now()
	var tmp string
	if err == nil && !h.info.OnDisk {
		// What is written is summed on the way.
		tmp, err = writeReplica(b.dir("replicas"), r.log.id, r.segment, h.info.Version, h.closing, h.buf.data()[:h.closing.End], b.breathe)
	}
	switch {
	case errors.Is(err, ErrNotFound):
		return nil // It was dropped, or put anew.
	case errors.Is(err, ErrCorrupt):
		background.Aloud(func() { r.markCorrupt(err) })
		return nil
	case err != nil:
		return err
	case h.info.OnDisk:
		return nil
	}
	h.release()
	b.count.flushNanos.Add(uint64(time.Since(begin)))
	background.Aloud(func() { err = r.moveTo(tmp) })
	return err
}

// moveTo makes a file the replica's place and gives its buffer back.
func (r *replica) moveTo(tmp string) error {
	l := r.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.lost {
		return removeFile(tmp)
	}
	path, err := adoptReplica(l.b.dir("replicas"), tmp, l.id, r.segment)
	if err != nil {
		return err
	}
	r.path = path
	l.b.count.flushed.Add(1)
	l.b.count.flushedBytes.Add(uint64(r.closing.End))
	return r.leaveBuffer()
}

// markCorrupt remembers that a replica is, and tells. An error that says nothing
// of its bytes, and a replica that was dropped meanwhile, are left alone.
func (r *replica) markCorrupt(why error) {
	if !errors.Is(why, ErrCorrupt) && !errors.Is(why, fs.ErrNotExist) {
		return
	}
	l := r.log
	l.mu.Lock()
	known := r.corrupt || r.lost
	r.corrupt = true
	l.mu.Unlock()
	if known {
		return
	}
	l.b.count.corrupt.Add(1)
	l.b.o.Log.Error("a replica is corrupt; its primary will be told to make another", "log", nameOf(l.id), "segment", uint64(r.segment), "error", why)
	if l.b.o.Corrupt != nil {
		l.b.o.Corrupt(l.id, r.segment)
	}
}

// breathe leaves core and disk to others for a moment, unless others wait for buffers.
func (b *Backup) breathe() {
	if !b.pool.pressed() {
		background.Breathe()
	}
}
