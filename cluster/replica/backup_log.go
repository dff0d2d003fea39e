package replica

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/fabric"
)

// copies is what a backup has of one log.
type copies struct {
	b  *Backup
	id record.LogID

	mu       sync.Mutex
	saved    savedLog
	replicas map[record.SegmentID]*replica
	// discarded are the numbers of the last requests to discard what is in the roster: one to open it that was sent before may
	// be taken after it.
	discarded map[record.SegmentID]uint64
	closed    bool

	dom fabric.Domain // of its queue pairs and keys; nil if it is not connected
	cq  fabric.CQ
	qps []fabric.QP
}

// nameOf is how a log is called wherever people read of it.
func nameOf(id record.LogID) string { return fmt.Sprintf("%016x", uint64(id)) }

// savedLog is what outlives the process.
type savedLog struct {
	Node    view.NodeID `json:"node,omitempty"`
	Retired bool        `json:"retired,omitempty"`
	Roster  Roster      `json:"roster"`
}

// log returns what there is of a log, and makes it if make is set.
func (b *Backup) log(id record.LogID, make bool) *copies {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.logs[id]
	if l == nil && make {
		l = &copies{b: b, id: id, replicas: map[record.SegmentID]*replica{}, discarded: map[record.SegmentID]uint64{}}
		b.logs[id] = l
	}
	return l
}

func (b *Backup) all() []*copies {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []*copies
	for _, l := range b.logs {
		all = append(all, l)
	}
	return all
}

var errClosing = errors.New("the backup is closed")

// mayWrite lets a primary act on its log. The first node that does so owns
// it. The caller holds l.mu.
func (l *copies) mayWrite(from view.NodeID) error {
	switch {
	case l.closed:
		return errClosing
	case l.saved.Retired:
		return fmt.Errorf("%w (log %x)", ErrRetired, uint64(l.id))
	case l.saved.Node == "":
		saved := l.saved
		saved.Node = from
		return l.save(saved)
	case l.saved.Node != from:
		return fmt.Errorf("%w: log %x is of node %s", ErrForeign, uint64(l.id), l.saved.Node)
	}
	return nil
}

func (l *copies) path() string {
	return filepath.Join(l.b.dir("logs"), fmt.Sprintf("%016x", uint64(l.id)))
}

// save stores what is known, then takes it for known. The last room on a full disk is
// for this.
func (l *copies) save(saved savedLog) error {
	body, err := json.Marshal(saved)
	if err != nil {
		return err
	}
	content := append(fmt.Appendf(nil, "%08x\n", crc32.Checksum(body, castagnoli)), body...)
	err = replaceFile(l.path(), content)
	if isFull(err) && l.b.savings.spend() {
		err = replaceFile(l.path(), content)
	}
	if isFull(err) {
		err = fmt.Errorf("%w: %w", ErrFull, err)
	}
	if err != nil {
		return fmt.Errorf("store what is known of log %x: %w", uint64(l.id), err)
	}
	l.saved = saved
	return nil
}

// retiredSuffix ends the name of an empty file, which says that a log is retired where there was no room to write it.
const retiredSuffix = ".retired"

// mark stores that a log is retired, and takes it for known. It needs no room: others have written where the last of it was.
func (l *copies) mark(saved savedLog) error {
	f, err := os.OpenFile(l.path()+retiredSuffix, os.O_WRONLY|os.O_CREATE, 0o600)
	if err == nil {
		err = errors.Join(f.Close(), syncDir(l.b.dir("logs")))
	}
	if err != nil {
		return fmt.Errorf("mark log %x as retired: %w", uint64(l.id), err)
	}
	l.saved = saved
	return nil
}

// parseLogName tells which log's a file is.
func parseLogName(name string) (record.LogID, error) {
	n, err := strconv.ParseUint(name, 16, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %s is no log", ErrCorrupt, name)
	}
	return record.LogID(n), nil
}

// loadLog reads a file that save wrote.
func loadLog(path string) (id record.LogID, saved savedLog, err error) {
	if id, err = parseLogName(filepath.Base(path)); err != nil {
		return 0, saved, err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return 0, saved, err
	}
	if len(content) < 9 || string(content[:9]) != fmt.Sprintf("%08x\n", crc32.Checksum(content[9:], castagnoli)) {
		return 0, saved, fmt.Errorf("%w: %s", ErrCorrupt, path)
	}
	return id, saved, json.Unmarshal(content[9:], &saved)
}

// disconnect ends the queue pairs and all keys. When it returns nothing lands in
// any replica of the log. The caller holds l.mu.
func (l *copies) disconnect() error {
	for _, r := range l.replicas {
		r.endAppends()
	}
	if l.dom == nil {
		return nil
	}
	if err := l.dom.Close(); err != nil && !isGone(err) {
		return err
	}
	l.dom, l.cq, l.qps = nil, nil, nil
	for _, r := range l.replicas {
		r.region = nil
	}
	return nil
}

// close lets go of the memory; the files stay.
func (l *copies) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	errs := []error{l.disconnect()}
	for _, r := range l.replicas {
		if r.buf != nil {
			r.buf.readers.Lock()
			errs = append(errs, r.buf.unmap())
			r.buf.readers.Unlock()
			r.buf = nil
			r.lost = true
		}
	}
	return errors.Join(errs...)
}
