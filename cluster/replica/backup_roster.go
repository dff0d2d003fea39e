package replica

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"

	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/engine/record"
)

// check says why a roster makes no sense.
func (r *Roster) check() error {
	if r.Number == 0 {
		return fmt.Errorf("%w: rosters are numbered from 1", ErrInvalid)
	}
	return errors.Join(r.Segments.Check(maxSegments), r.Opening.Check(maxSegments))
}

// adopt stores a roster, if it is the latest, and drops what it makes stale. The
// caller holds l.mu.
func (l *copies) adopt(r Roster) error {
	if r.Number <= l.saved.Roster.Number {
		return nil
	}
	r.Safe = max(r.Safe, l.saved.Roster.Safe) // Who begins may not have heard of it.
	saved := l.saved
	saved.Roster = r
	if err := l.save(saved); err != nil {
		return err
	}
	return l.dropStale()
}

// dropStale drops what is not part of the log any more.
func (l *copies) dropStale() error {
	var errs []error
	maps.DeleteFunc(l.discarded, func(id record.SegmentID, _ uint64) bool { return !l.saved.Roster.Segments.Contains(uint64(id)) })
	for id, r := range l.replicas {
		if why := l.stale(r); why != "" {
			l.b.o.Log.Debug("a replica is dropped", "log", nameOf(l.id), "segment", uint64(id), "why", why)
			l.b.count.dropped.Add(1)
			errs = append(errs, r.drop())
		}
	}
	return errors.Join(errs...)
}

// stale says why a replica is; nothing if it is not, or nobody knows.
func (l *copies) stale(r *replica) string {
	latest := &l.saved.Roster
	switch {
	case latest.Number == 0:
		return ""
	case !latest.Segments.Contains(uint64(r.segment)):
		return "not in the roster"
	case r.state != StateClosed && r.version < latest.Version:
		return "of an earlier replica version"
	}
	return ""
}

func (b *Backup) onRoster(_ context.Context, c *peer.Call) (any, []byte, error) {
	var q RosterRequest
	if err := c.Bind(&q); err != nil {
		return nil, nil, err
	}
	if err := q.Roster.check(); err != nil {
		return nil, nil, err
	}
	l, err := b.writable(q.Log, c.From)
	if err != nil {
		return nil, nil, err
	}
	defer l.mu.Unlock()
	return nil, nil, l.adopt(q.Roster)
}

// retire closes the log to its primary, for good. When it returns nothing lands any more, and
// what there is of open replicas is written down: bytes of a write that a NIC
// places late all the same lie behind that, and do not count. The caller holds l.mu.
func (l *copies) retire() error {
	if err := l.disconnect(); err != nil {
		return fmt.Errorf("close the queue pairs of log %x: %w", uint64(l.id), err)
	}
	if !l.saved.Retired {
		saved := l.saved
		saved.Retired = true
		if err := l.save(saved); errors.Is(err, ErrFull) {
			if marked := l.mark(saved); marked != nil {
				return errors.Join(err, marked)
			}
		} else if err != nil {
			return err
		}
		l.b.o.Log.Info("a log is closed to its primary", "log", nameOf(l.id), "node", l.saved.Node, "replicas", len(l.replicas))
	}
	var errs []error
	for _, r := range l.replicas {
		if r.buf != nil && r.state != StateClosed && !r.frozen {
			errs = append(errs, r.freeze())
		}
	}
	return errors.Join(errs...)
}

// freeze writes down how far an open replica goes.
func (r *replica) freeze() error {
	ext, err := record.Scan(r.buf.data(), r.segment)
	if err != nil {
		r.corrupt = true
	}
	r.closing.End, r.frozen = uint32(ext.End), true
	if err := r.store(false); err != nil {
		r.frozen = false
		return err
	}
	return nil
}

func (b *Backup) onForget(_ context.Context, c *peer.Call) (any, []byte, error) {
	var q ForgetRequest
	if err := c.Bind(&q); err != nil {
		return nil, nil, err
	}
	l := b.log(q.Log, false)
	if l == nil {
		return nil, nil, nil
	}
	l.mu.Lock()
	saved := l.saved
	l.mu.Unlock()
	if saved.Node != c.From && !saved.Retired {
		return nil, nil, fmt.Errorf("%w: log %x is of node %s, and not retired", ErrForeign, uint64(q.Log), saved.Node)
	}
	return nil, nil, b.Forget(q.Log)
}

// Forget drops all that there is of a log. That it is retired stays known.
func (b *Backup) Forget(id record.LogID) error {
	l := b.log(id, false)
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.disconnect(); err != nil {
		return err
	}
	var errs []error
	for _, r := range l.replicas {
		errs = append(errs, r.drop())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("forget log %x: %w", uint64(id), err)
	}
	return l.forgotten()
}

// forgotten ends the log's own file, unless it says that the log is retired.
func (l *copies) forgotten() error {
	if l.saved.Retired {
		return l.save(savedLog{Node: l.saved.Node, Retired: true})
	}
	l.saved = savedLog{}
	if err := os.Remove(l.path()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return syncDir(l.b.dir("logs"))
}

// LogInfo is what a backup knows of a log.
type LogInfo struct {
	Log      record.LogID
	Node     string
	Retired  bool
	Roster   uint64
	Replicas int
	Open     int // of them
}

// Logs tells which logs there are. Those that are retired and whose recovery has
// ended can be forgotten.
func (b *Backup) Logs() []LogInfo {
	var infos []LogInfo
	for _, l := range b.all() {
		l.mu.Lock()
		i := LogInfo{Log: l.id, Node: string(l.saved.Node), Retired: l.saved.Retired, Roster: l.saved.Roster.Number, Replicas: len(l.replicas)}
		for _, r := range l.replicas {
			if r.state != StateClosed {
				i.Open++
			}
		}
		l.mu.Unlock()
		infos = append(infos, i)
	}
	return infos
}
