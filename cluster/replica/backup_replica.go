package replica

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/fabric"
)

// replica is a copy of one segment. It lies in a buffer, or in a file of its own.
// All fields but those of Append are under the lock of its log.
type replica struct {
	log     *copies
	segment record.SegmentID
	version uint64
	opened  uint64 // the number of the newest request that opened it; 0 if it was found here
	state   State
	closing Closing // of a closed one; End of a frozen one
	frozen  bool    // the log is retired: nothing behind End counts
	corrupt bool
	lost    bool // the backup is closing

	buf  *buffer // nil if it is on disk
	path string

	region fabric.Region // nil if there is no key
	live   atomic.Uint64 // the handle that may append; 0 if none
	// appending is held shared by appends while they look at live and write.
	appending sync.RWMutex
}

// bufferState is how the replica's state stands in its buffer's header.
func (r *replica) bufferState() bufferState {
	switch r.state {
	case StateClosed:
		return bufferClosed
	case StateCreating:
		return bufferCreating
	}
	return bufferOpen
}

// store writes the header of the replica's buffer.
func (r *replica) store(sync bool) error {
	return r.buf.store(bufferHeader{
		log: r.log.id, segment: r.segment, version: r.version, state: r.bufferState(), closing: r.closing, frozen: r.frozen,
	}, sync)
}

// endAppends takes the handle back. Whoever appended is done when it returns.
func (r *replica) endAppends() {
	r.appending.Lock()
	defer r.appending.Unlock()
	if h := r.live.Swap(0); h != 0 {
		r.log.b.handles.Delete(h)
	}
}

// revoke takes key and handle back: when it returns nothing lands any more.
func (r *replica) revoke() error {
	r.endAppends()
	if r.region == nil {
		return nil
	}
	if err := r.region.Revoke(); err != nil && !isGone(err) {
		return fmt.Errorf("revoke the key of segment %d: %w", r.segment, err)
	}
	r.region = nil
	return nil
}

// isGone tells whether a fence failed because there is nothing left that could write.
func isGone(err error) bool {
	return errors.Is(err, fabric.ErrNICLost) || errors.Is(err, fabric.ErrClosed)
}

// drop ends the replica. What it lay in is used for others.
func (r *replica) drop() error {
	if err := r.revoke(); err != nil {
		return err // Something might still land: keep the buffer.
	}
	if err := r.leaveBuffer(); err != nil {
		return err
	}
	delete(r.log.replicas, r.segment)
	r.lost = true
	if r.path != "" {
		return os.Remove(r.path)
	}
	return nil
}

// leaveBuffer gives the buffer back, if there is one. Its header says so at once,
// so that no restart finds the replica there again.
func (r *replica) leaveBuffer() error {
	if r.buf == nil {
		return nil
	}
	if err := r.buf.store(bufferHeader{state: bufferDirty}, false); err != nil {
		return err
	}
	r.log.b.pool.release(r.buf)
	r.buf = nil
	return nil
}

// held is a replica whose bytes are looked at. They do not change until release.
type held struct {
	info    ReplicaInfo
	closing Closing
	bytes   []byte   // those that may count; after load
	pinned  bool     // they are the buffer's own, not a copy
	places  []placed // of a closed one's entries, if somebody has looked already

	replica *replica
	buf     *buffer // nil if it is on disk
	path    string
	quiet   bool // nobody writes to it any more
}

// hold takes the bytes of a replica. into is memory that they may be copied to.
func (r *replica) hold(into []byte) (held, error) {
	h, err := r.pin()
	if err == nil {
		err = h.load(into)
	}
	if err != nil {
		h.release()
	}
	return h, err
}

// pin keeps the replica's buffer from being used for another until release.
func (r *replica) pin() (h held, err error) {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	h = held{info: r.info(), closing: r.closing, replica: r}
	switch {
	case r.lost:
		return h, fmt.Errorf("%w: segment %d was dropped", ErrNotFound, r.segment)
	case r.corrupt:
		return h, fmt.Errorf("%w: segment %d was found to be", ErrCorrupt, r.segment)
	}
	h.buf, h.path, h.quiet = r.buf, r.path, r.state == StateClosed || r.frozen
	if h.buf != nil {
		h.buf.readers.RLock()
	}
	return h, nil
}

// load brings the bytes, and checks that those of a closed replica are what they were.
func (h *held) load(into []byte) (err error) {
	r := h.replica
	switch {
	case h.buf == nil:
		h.bytes, err = readReplica(h.path, r.log.id, r.segment, h.closing, into)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: %w", ErrNotFound, err)
		}
		return err
	case h.quiet:
		h.bytes, h.pinned = h.buf.data()[:h.closing.End], true
	default: // It is being written to.
		h.bytes = h.buf.copyOut(into, len(h.buf.data()))
		h.release()
	}
	if h.info.State == StateClosed && Sum(h.bytes) != h.closing.Sum {
		return fmt.Errorf("%w: segment %d does not match its sum", ErrCorrupt, r.segment)
	}
	return nil
}

// release lets the buffer go. It can be called more than once.
func (h *held) release() {
	if h.buf == nil {
		return
	}
	h.buf.readers.RUnlock()
	h.buf, h.pinned = nil, false
	h.replica.log.b.wakeFlusher() // It may have waited for this reader.
}

// info is what is known without a look at the bytes.
func (r *replica) info() ReplicaInfo {
	i := ReplicaInfo{
		Segment: r.segment, Version: r.version, State: r.state, Corrupt: r.corrupt, OnDisk: r.path != "",
		End: r.closing.End,
	}
	if r.state == StateClosed {
		i.Sealed, i.Batch, i.Sum = true, r.closing.Batch, r.closing.Sum
	}
	return i
}

// scan finds what is whole of the bytes. A closed replica's match their sum
// already; an open one's payloads are checked one by one.
func (h *held) scan(only func(record.BatchID) bool) (record.Extent, error) {
	closed := h.info.State == StateClosed
	ext, err := record.ScanWith(h.bytes, h.info.Segment, record.ScanOptions{Closed: closed && only == nil, SkipCRC: closed, Only: only})
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return ext, err
}
