package replica

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/internal/background"
)

const (
	// maxEndpoints bounds the queue pairs of a log.
	maxEndpoints = 64
	// maxSegments bounds a roster: more would be 256 TiB.
	maxSegments = record.MaxSlots
)

// access is what a key allows. FLUSH is a READ where a provider has no other.
const access = fabric.LocalWrite | fabric.RemoteWrite | fabric.RemoteRead

func (b *Backup) onConnect(_ context.Context, c *peer.Call) (any, []byte, error) {
	var q ConnectRequest
	if err := c.Bind(&q); err != nil {
		return nil, nil, err
	}
	l := b.log(q.Log, true)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.mayWrite(c.From); err != nil {
		return nil, nil, err
	}
	a := ConnectAnswer{SegmentBytes: b.o.SegmentBytes}
	switch {
	case len(q.Endpoints) > maxEndpoints:
		return nil, nil, fmt.Errorf("%w: %d queue pairs; at most %d", ErrInvalid, len(q.Endpoints), maxEndpoints)
	case len(q.Endpoints) > 0 && b.o.Device == nil:
		return nil, nil, fmt.Errorf("%w: this backup has no fabric", ErrInvalid)
	}
	if err := l.closeQPs(); err != nil {
		return nil, nil, err
	}
	for _, e := range q.Endpoints {
		mine, err := l.connect(e)
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("connect with %s: %w", c.From, err), l.closeQPs())
		}
		a.Endpoints = append(a.Endpoints, mine)
	}
	b.count.connects.Add(1)
	return a, nil, nil
}

// connect makes a queue pair for one of the primary's.
func (l *copies) connect(peer fabric.Endpoint) (mine fabric.Endpoint, err error) {
	if l.dom == nil {
		if l.dom, err = l.b.o.Device.NewDomain("replica"); err != nil {
			return mine, err
		}
		if l.cq, err = l.dom.NewCQ(0); err != nil { // Nothing is ever posted here.
			return mine, err
		}
	}
	q, err := l.dom.NewQP(fabric.QPConfig{SendCQ: l.cq, RecvCQ: l.cq, SendDepth: 1, RecvDepth: 1})
	if err != nil {
		return mine, err
	}
	l.qps = append(l.qps, q)
	return q.Endpoint(), q.Connect(peer)
}

func (l *copies) closeQPs() error {
	for len(l.qps) > 0 {
		if err := l.qps[0].Close(); err != nil && !isGone(err) {
			return fmt.Errorf("close a queue pair of log %x: %w", uint64(l.id), err)
		}
		l.qps = l.qps[1:]
	}
	return nil
}

func (b *Backup) onOpen(_ context.Context, c *peer.Call) (any, []byte, error) {
	var q OpenRequest
	if err := c.Bind(&q); err != nil {
		return nil, nil, err
	}
	if q.Bytes != b.o.SegmentBytes {
		return nil, nil, fmt.Errorf("%w: a segment of %d bytes; the backup's buffers have %d", ErrInvalid, q.Bytes, b.o.SegmentBytes)
	}
	l := b.log(q.Log, true)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.mayWrite(c.From); err != nil {
		return nil, nil, err
	}
	a, err := l.open(&q)
	if errors.Is(err, ErrFull) {
		b.count.refusals.Add(1)
	}
	if err == nil {
		b.count.opens.Add(1)
	}
	return a, nil, err
}

// open makes the replica, or goes on with the one that is there.
func (l *copies) open(q *OpenRequest) (a OpenAnswer, err error) {
	if err := l.current(q.Segment, q.Version, &q.Roster); err != nil {
		return a, err
	}
	r := l.replicas[q.Segment]
	switch {
	case r == nil && q.Number < l.discarded[q.Segment]:
		return a, fmt.Errorf("%w: segment %d was discarded since", ErrStale, q.Segment)
	case r == nil:
		r, err = l.create(q)
	case r.state == StateClosed:
		return a, fmt.Errorf("%w: segment %d", ErrClosed, q.Segment)
	case q.Version < r.version:
		return a, fmt.Errorf("%w: segment %d has version %d, not %d", ErrStale, q.Segment, r.version, q.Version)
	default:
		a.End, err = l.reopen(r, q)
	}
	if err != nil {
		return a, err
	}
	r.opened = max(r.opened, q.Number)
	a.Region, a.Handle, err = l.lend(r)
	return a, err
}

// current checks that a request is not of an earlier state of the log.
func (l *copies) current(id record.SegmentID, version uint64, r *Roster) error {
	if err := r.check(); err != nil {
		return err
	}
	latest := r
	if l.saved.Roster.Number > r.Number {
		latest = &l.saved.Roster
	}
	switch {
	case !r.Segments.Contains(uint64(id)):
		return fmt.Errorf("%w: segment %d is not in its own roster", ErrInvalid, id)
	case !latest.Segments.Contains(uint64(id)):
		return fmt.Errorf("%w: segment %d is not in roster %d", ErrStale, id, latest.Number)
	case version < max(r.Version, l.saved.Roster.Version):
		return fmt.Errorf("%w: version %d; roster %d is of version %d", ErrStale, version, l.saved.Roster.Number, l.saved.Roster.Version)
	}
	return nil
}

// create takes a buffer. The roster is stored first: so whatever is found after a
// death is in the roster that is found with it, or was never answered for.
func (l *copies) create(q *OpenRequest) (*replica, error) {
	buf, err := l.b.pool.take()
	if err != nil {
		return nil, err
	}
	r := &replica{log: l, segment: q.Segment, version: q.Version, state: stateOf(q), buf: buf}
	if err := l.adopt(q.Roster); err != nil {
		l.b.pool.putBack(buf)
		return nil, err
	}
	if err := r.store(true); err != nil {
		l.b.pool.release(buf)
		return nil, err
	}
	l.replicas[q.Segment] = r
	return r, nil
}

func stateOf(q *OpenRequest) State {
	if q.Creating {
		return StateCreating
	}
	return StateOpen
}

// reopen gives the replica a new key and a new version; what it has stays.
//
// One that counts, and that another is to replace, goes on to count as what it
// was until it is raised: its primary may lose sight of all backups at once, open
// all replicas again, and die before it could raise one.
func (l *copies) reopen(r *replica, q *OpenRequest) (end uint32, err error) {
	if err := r.revoke(); err != nil {
		return 0, err
	}
	if err := l.adopt(q.Roster); err != nil {
		return 0, err
	}
	if l.replicas[r.segment] != r {
		return 0, fmt.Errorf("%w: segment %d", ErrStale, r.segment)
	}
	before, was := r.version, r.state
	if counts := r.state == StateOpen && r.version >= q.Roster.Version; !counts || !q.Creating {
		r.version, r.state = q.Version, stateOf(q)
	}
	if err := r.store(true); err != nil {
		r.version, r.state = before, was
		return 0, err
	}
	ext, err := record.Scan(r.buf.data(), r.segment)
	return uint32(ext.End), err
}

// lend gives the replica a key and a handle.
func (l *copies) lend(r *replica) (info fabric.RegionInfo, handle uint64, err error) {
	if l.dom != nil {
		if r.region, err = l.dom.Register(r.buf.mem, access); err != nil {
			r.region = nil
			return info, 0, fmt.Errorf("register the buffer of segment %d: %w", r.segment, err)
		}
		info = r.region.Info()
	}
	handle = 1 + rand.Uint64N(math.MaxUint64)
	r.live.Store(handle)
	l.b.handles.Store(handle, r)
	return info, handle, nil
}

// onAppend is the write path of `replication: rpc`.
func (b *Backup) onAppend(_ context.Context, c *peer.Call) (any, []byte, error) {
	if len(c.Head) != AppendHeadBytes {
		return nil, nil, fmt.Errorf("%w: the head of an append has %d bytes", ErrInvalid, len(c.Head))
	}
	handle, off := binary.LittleEndian.Uint64(c.Head), binary.LittleEndian.Uint32(c.Head[8:])
	v, ok := b.handles.Load(handle)
	if !ok {
		return nil, nil, fmt.Errorf("%w: no replica is open by this handle", ErrNotFound)
	}
	r := v.(*replica)
	r.appending.RLock()
	defer r.appending.RUnlock()
	switch {
	case r.live.Load() != handle:
		return nil, nil, fmt.Errorf("%w: no replica is open by this handle", ErrNotFound)
	case uint64(off)+uint64(len(c.Bulk)) > uint64(len(r.buf.data())):
		return nil, nil, fmt.Errorf("%w: %d bytes at %d of a segment of %d", ErrInvalid, len(c.Bulk), off, len(r.buf.data()))
	}
	r.buf.place(off, c.Bulk)
	return nil, nil, nil
}

func (b *Backup) onRaise(_ context.Context, c *peer.Call) (any, []byte, error) {
	var q RaiseRequest
	if err := c.Bind(&q); err != nil {
		return nil, nil, err
	}
	l, err := b.writable(q.Log, c.From)
	if err != nil {
		return nil, nil, err
	}
	defer l.mu.Unlock()
	for _, id := range q.Segments {
		r := l.replicas[id]
		if r == nil || r.state == StateClosed {
			return nil, nil, fmt.Errorf("%w: segment %d is not open here", ErrNotFound, id)
		}
		if r.version > q.Version {
			return nil, nil, fmt.Errorf("%w: segment %d has version %d", ErrStale, id, r.version)
		}
	}
	for _, id := range q.Segments {
		r := l.replicas[id]
		r.version, r.state = q.Version, StateOpen
		if err := r.store(true); err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, nil
}

// writable is a log that the caller may change, locked.
func (b *Backup) writable(id record.LogID, from view.NodeID) (*copies, error) {
	l := b.log(id, true)
	l.mu.Lock()
	if err := l.mayWrite(from); err != nil {
		l.mu.Unlock()
		return nil, err
	}
	return l, nil
}

func (b *Backup) onClose(_ context.Context, c *peer.Call) (any, []byte, error) {
	var q CloseRequest
	if err := c.Bind(&q); err != nil {
		return nil, nil, err
	}
	l, err := b.writable(q.Log, c.From)
	if err != nil {
		return nil, nil, err
	}
	defer l.mu.Unlock()
	r, done, err := l.toClose(&q)
	if done || err != nil {
		return nil, nil, err
	}
	if err := r.revoke(); err != nil {
		return nil, nil, err
	}
	wrong, err := l.look(r, &q, c.From)
	if err != nil {
		return nil, nil, err
	}
	if _, done, err := l.toClose(&q); done || err != nil {
		return nil, nil, err
	}
	if err := r.close(q.Closing, wrong); err != nil {
		return nil, nil, err
	}
	b.count.closes.Add(1)
	b.toFlush(r)
	return nil, nil, nil
}

// toClose is the replica that is to be closed, or done if it was already.
func (l *copies) toClose(q *CloseRequest) (r *replica, done bool, err error) {
	r = l.replicas[q.Segment]
	switch {
	case r == nil:
		return nil, false, fmt.Errorf("%w: segment %d", ErrNotFound, q.Segment)
	case r.state == StateClosed && r.closing == q.Closing && !r.corrupt:
		return r, true, nil
	case r.state == StateClosed:
		return nil, false, fmt.Errorf("%w: segment %d was closed otherwise", ErrCorrupt, q.Segment)
	}
	return r, false, nil
}

// piecesALook is how much of a replica is looked at between two rests: they shall not add up to more than some 20 ms, for a primary
// raises nothing at a backup that is closing.
const piecesALook = 8

// look checks that all of a segment is there, whose key was revoked. That takes milliseconds, and nobody waits for it: so it
// goes after those who serve, and without the log's lock, which others want meanwhile. If anything has happened to
// the replica until it has the lock again, the caller is told to ask once more.
func (l *copies) look(r *replica, q *CloseRequest, from view.NodeID) (wrong, err error) {
	buf, opened := r.buf, r.opened
	buf.readers.RLock()
	l.mu.Unlock()
	if l.b.looking != nil {
		l.b.looking()
	}
	pieces := 0
	rest := func() {
		if pieces++; pieces%piecesALook == 0 {
			l.b.breathe()
		}
	}
	check := func() { wrong = verify(buf.data(), l.id, q.Segment, q.Closing, true, rest) }
	if l.b.pool.pressed() {
		check()
	} else {
		background.Modestly(check)
	}
	buf.readers.RUnlock()
	l.b.wakeFlusher() // It may have waited for this reader.
	l.mu.Lock()
	if err := l.mayWrite(from); err != nil {
		return nil, err
	}
	now := l.replicas[q.Segment]
	if now != nil && now.state != StateClosed && (now != r || r.buf != buf || r.opened != opened || r.region != nil || r.live.Load() != 0) {
		return nil, fmt.Errorf("segment %d was opened again while it was closed", q.Segment)
	}
	return wrong, nil
}

// close makes the replica a closed one, unless something is wrong with its bytes.
func (r *replica) close(c Closing, wrong error) error {
	if wrong != nil {
		r.corrupt = true
		return wrong
	}
	was, before := r.state, r.closing
	r.state, r.closing, r.corrupt = StateClosed, c, false
	if err := r.store(false); err != nil {
		r.state, r.closing = was, before
		return err
	}
	return nil
}

// verify says why bytes are not the closed segment that was meant. A sum that
// matches makes the CRCs of the payloads superfluous, if the primary's own were checked.
func verify(bytes []byte, log record.LogID, id record.SegmentID, c Closing, skipCRC bool, between func()) error {
	if uint64(c.End) > uint64(len(bytes)) {
		return fmt.Errorf("%w: segment %d of %d bytes cannot end at %d", ErrInvalid, id, len(bytes), c.End)
	}
	if sumSlowly(bytes[:c.End], between) != c.Sum {
		return fmt.Errorf("%w: segment %d does not match its sum", ErrCorrupt, id)
	}
	return verifyEntries(bytes[:c.End], log, id, c, record.ScanOptions{SkipCRC: skipCRC, Between: between})
}

// verifyEntries is verify for bytes whose sum is another's to check.
func verifyEntries(bytes []byte, log record.LogID, id record.SegmentID, c Closing, o record.ScanOptions) error {
	o.Closed = true
	ext, err := record.ScanWith(bytes, id, o)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	info, err := record.DecodeSegmentHeader(bytes)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if ext.End != int(c.End) || ext.Batch != c.Batch || info.Log != log {
		return fmt.Errorf("%w: segment %d of log %x ends at %d with batch %d; meant were %d and %d of log %x",
			ErrCorrupt, id, uint64(info.Log), ext.End, ext.Batch, c.End, c.Batch, uint64(log))
	}
	return nil
}
