package ostropebble

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// A replica's directory:
//
//	base-0000000000abcdef/   the database as it was at that position of the journal, and
//	    POSITION             what is needed to go on from there
//	live/                    the database that pieces are applied to; worth nothing after a crash
//
// A base is made beside and renamed when it is complete, so the newest is always
// whole. Until there is a newer one, the journal keeps everything behind it: base
// and journal together are the database, whatever happens to live.
const (
	basePrefix   = "base-"
	liveName     = "live"
	positionName = "POSITION"
	unfinished   = ".new"
)

// position is how far a database is.
type position struct {
	Position uint64 // of the journal
	Stream   stream
}

func baseName(pos uint64) string { return fmt.Sprintf("%s%016x", basePrefix, pos) }

// tidyBases removes all bases of a directory but the newest, and what was never
// finished; "" means that there is none.
func tidyBases(dir string) (newest string, err error) {
	entries, err := os.ReadDir(dir) // in the order of names, which is the order of positions
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		switch {
		case !strings.HasPrefix(e.Name(), basePrefix):
		case strings.HasSuffix(e.Name(), unfinished):
			err = errors.Join(err, os.RemoveAll(name))
		default:
			if newest != "" {
				err = errors.Join(err, os.RemoveAll(newest))
			}
			newest = name
		}
	}
	return newest, err
}

func readPosition(base string) (p position, err error) {
	b, err := os.ReadFile(filepath.Join(base, positionName))
	if err != nil {
		return p, fmt.Errorf("pebble: read a base: %w", err)
	}
	if err := json.Unmarshal(b, &p); err != nil {
		return p, fmt.Errorf("pebble: %s in %s is damaged: %w", positionName, base, err)
	}
	return p, nil
}

// makeBase stores a database as a base: all of it that was applied, and where it
// is. Applying must rest meanwhile.
func makeBase(db *pebble.DB, dir string, p position) error {
	final := filepath.Join(dir, baseName(p.Position))
	if _, err := os.Stat(final); err == nil {
		return nil
	}
	if err := checkpoint(db, final+unfinished, p); err != nil {
		return err
	}
	if err := publish(final+unfinished, final); err != nil {
		return err
	}
	_, err := tidyBases(dir)
	return err
}

// checkpoint writes a database and its position into a new directory, durably.
// It flushes whether there is something to flush or not: see DB.Checkpoint.
func checkpoint(db *pebble.DB, dir string, p position) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := db.Flush(); err != nil {
		return fmt.Errorf("pebble: flush: %w", err)
	}
	if err := db.Checkpoint(dir); err != nil {
		return fmt.Errorf("pebble: checkpoint: %w", err)
	}
	if err := removeLogs(dir); err != nil {
		return err
	}
	b, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if err := writeSynced(filepath.Join(dir, positionName), b); err != nil {
		return err
	}
	return syncDir(dir)
}

// removeLogs removes write-ahead logs. A copy makes them like every Pebble, and
// writes nothing there.
func removeLogs(dir string) error {
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	for _, name := range logs {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// publish gives a finished directory its name.
func publish(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncDir(filepath.Dir(to))
}

// Seed makes the first base of a new replica's directory from a checkpoint of
// another replica's copy.
func Seed(dir, checkpoint string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("pebble: seed a copy: %w", err)
	}
	p, err := readPosition(checkpoint)
	if err != nil {
		return err
	}
	final := filepath.Join(dir, baseName(p.Position))
	if err := os.RemoveAll(final + unfinished); err != nil {
		return fmt.Errorf("pebble: seed a copy: %w", err)
	}
	if err := cloneBase(checkpoint, final+unfinished); err != nil {
		return fmt.Errorf("pebble: seed a copy: %w", err)
	}
	b, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if err := writeSynced(filepath.Join(final+unfinished, positionName), b); err != nil {
		return fmt.Errorf("pebble: seed a copy: %w", err)
	}
	return errors.Join(syncDir(final+unfinished), publish(final+unfinished, final))
}

// revive makes live anew from a base.
func revive(base, live string) error {
	if err := os.RemoveAll(live); err != nil {
		return err
	}
	if base == "" {
		return os.MkdirAll(live, 0o755)
	}
	return cloneBase(base, live)
}

// cloneBase copies a base; tables, which never change, are linked where that is possible.
func cloneBase(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == positionName {
			return err
		}
		into := filepath.Join(to, e.Name())
		if filepath.Ext(path) == ".sst" {
			return vfs.LinkOrCopy(vfs.Default, path, into)
		}
		return vfs.Copy(vfs.Default, path, into)
	})
}

func writeSynced(name string, b []byte) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
