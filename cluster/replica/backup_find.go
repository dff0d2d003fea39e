package replica

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// find puts together what an earlier process left.
func (b *Backup) find(used []*buffer, broken []string) error {
	if err := b.findLogs(); err != nil {
		return err
	}
	if err := b.findFiles(); err != nil {
		return err
	}
	for _, path := range broken {
		if err := b.setAside(path, "a buffer without a whole header"); err != nil {
			return err
		}
	}
	for _, buf := range used {
		if err := b.findBuffer(buf); err != nil {
			return err
		}
	}
	for _, l := range b.all() {
		if err := l.dropStale(); err != nil {
			return err
		}
		if err := l.refreeze(); err != nil {
			return err
		}
	}
	return nil
}

// setAside keeps a file that makes no sense out of the way, for somebody to look at.
func (b *Backup) setAside(path, what string) error {
	b.o.Log.Error("found "+what+"; it is set aside", "file", path+".broken")
	return os.Rename(path, path+".broken")
}

func (b *Backup) findLogs() error {
	// The names are in order: a mark comes after what it is a mark of.
	return eachFile(b.dir("logs"), func(path string) error {
		if name, marked := strings.CutSuffix(filepath.Base(path), retiredSuffix); marked {
			id, err := parseLogName(name)
			if err != nil {
				return b.setAside(path, "a mark of no log")
			}
			b.log(id, true).saved.Retired = true
			return nil
		}
		id, saved, err := loadLog(path)
		if errors.Is(err, ErrCorrupt) {
			return b.setAside(path, "a log's notes that are damaged: its replicas are kept, its roster is unknown")
		}
		if err != nil {
			return err
		}
		b.log(id, true).saved = saved
		return nil
	})
}

func (b *Backup) findFiles() error {
	return eachFile(b.dir("replicas"), func(path string) error {
		log, id, ok := parseReplicaName(filepath.Base(path))
		if !ok {
			return b.setAside(path, "a file that is no replica")
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		version, c, err := readFooter(f, log, id)
		_ = f.Close()
		if err != nil && !errors.Is(err, ErrCorrupt) {
			return err
		}
		l := b.log(log, true)
		l.replicas[id] = &replica{
			log: l, segment: id, version: version, state: StateClosed, closing: c, path: path, corrupt: err != nil,
		}
		return nil
	})
}

// eachFile visits the files of a directory. Those that were not finished are removed.
func eachFile(dir string, visit func(path string) error) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case strings.HasSuffix(path, tmpSuffix):
			err = removeFile(path)
		case strings.HasSuffix(path, ".broken"):
		default:
			err = visit(path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// findBuffer takes the replica in a buffer for one of the log's, unless the same
// is on disk already: then the earlier process died before it gave the buffer back.
func (b *Backup) findBuffer(buf *buffer) error {
	h := buf.header
	l := b.log(h.log, true)
	r := &replica{
		log: l, segment: h.segment, version: h.version, state: StateOpen, closing: h.closing, frozen: h.frozen, buf: buf,
	}
	switch h.state {
	case bufferCreating:
		r.state = StateCreating
	case bufferClosed:
		r.state = StateClosed
	}
	if file := l.replicas[h.segment]; file != nil && !file.corrupt {
		r.lost = true
		return r.leaveBuffer()
	}
	l.replicas[h.segment] = r
	if r.state == StateClosed {
		b.waiting.push(r)
	}
	return nil
}

// refreeze ends a fence in whose middle the earlier process died.
func (l *copies) refreeze() error {
	if !l.saved.Retired {
		return nil
	}
	for _, r := range l.replicas {
		if r.buf != nil && r.state != StateClosed && !r.frozen {
			if err := r.freeze(); err != nil {
				return err
			}
		}
	}
	return nil
}
