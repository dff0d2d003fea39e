// Package whole writes files that are there whole or not at all, whatever dies meanwhile.
package whole

import (
	"errors"
	"os"
	"path/filepath"
)

// Suffix is that of a file that is being written. One that a death left behind can be removed.
const Suffix = ".next"

// Write makes a file what it shall be, for good when it returns.
func Write(path string, b []byte) error {
	next := path + Suffix
	if err := writeSynced(next, b); err != nil {
		_ = os.Remove(next) // It takes room that may be what was lacking.
		return err
	}
	if err := os.Rename(next, path); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes what was created, renamed or removed in a folder safe from loss of power.
func SyncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func writeSynced(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}
