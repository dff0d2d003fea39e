package server

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// What a node of a cluster has in its data directory:
//
//	node.json       who it is, and which log is its own
//	log/            that log: the store's directory
//	backup/         replicas of other nodes' segments
//	retired-LOG/    a log that others took over, set aside
const (
	identityFile = "node.json"
	logDir       = "log"
	backupDir    = "backup"
	retiredDir   = "retired-"
)

// identity is who a node is for as long as its data lives.
type identity struct {
	Node view.NodeID  `json:"node"`
	Log  record.LogID `json:"log"`
	// Boot is the machine's when the log was last opened. If it has changed, the machine may have
	// lost what was not synced, and backups may know more of the log than the disk does.
	Boot string `json:"boot"`

	dir string
}

// readIdentity finds out who the node is, or makes it up.
func readIdentity(dir, wanted string) (identity, error) {
	id := identity{dir: dir}
	text, err := os.ReadFile(filepath.Join(dir, identityFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return newIdentity(dir, wanted)
	case err != nil:
		return id, fmt.Errorf("read who this node is: %w", err)
	}
	if err := json.Unmarshal(text, &id); err != nil || id.Node.Check() != nil || id.Log == 0 {
		return id, fmt.Errorf("%s in %s is damaged: restore it, or start with an empty data directory once others have taken over", identityFile, dir)
	}
	if wanted != "" && id.Node != view.NodeID(wanted) {
		return id, fmt.Errorf("the data directory %s is that of node %s, not %s: choose another directory, or leave node-id away", dir, id.Node, wanted)
	}
	return id, nil
}

func newIdentity(dir, wanted string) (identity, error) {
	if _, err := os.Stat(filepath.Join(dir, store.IdentityMeta)); err == nil {
		return identity{}, fmt.Errorf("%s holds the data of a server on its own: choose another directory for a node of a cluster", dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return identity{}, err
	}
	id := identity{Node: view.NodeID(wanted), Log: newLogID(), Boot: bootID(), dir: dir}
	if wanted == "" {
		var b [4]byte
		rand.Read(b[:])
		id.Node = view.NodeID("node-" + hex.EncodeToString(b[:]))
	}
	return id, id.write()
}

func newLogID() record.LogID {
	var b [8]byte
	rand.Read(b[:])
	return record.LogID(binary.LittleEndian.Uint64(b[:])>>1 | 1)
}

// write makes the identity what the next start finds, at once and whole.
func (id identity) write() error {
	text, err := json.Marshal(id)
	if err != nil {
		return err
	}
	return replaceFile(filepath.Join(id.dir, identityFile), append(text, '\n'))
}

// replaceFile puts a file in the place of another such that a reader finds one of both.
func replaceFile(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// bootID names this run of the machine; empty if it cannot be known.
func bootID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// rebooted tells whether the machine was started since the log was last opened.
func (id identity) rebooted() bool { return id.Boot == "" || id.Boot != bootID() }

// logPath is where the log's store lives.
func (id identity) logPath() string { return filepath.Join(id.dir, logDir) }

// hasLog tells whether there is one: a log that is new has none, nor has one that was lost.
func (id identity) hasLog() (bool, error) {
	_, err := os.Stat(id.logPath())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// setAside puts a log that others took over out of the way, in the place of an
// earlier one, and returns who the node is with a log of its own. Whatever step it dies after,
// it can be done again.
func (id identity) setAside() (identity, error) {
	aside := filepath.Join(id.dir, fmt.Sprintf("%s%016x", retiredDir, uint64(id.Log)))
	if _, err := os.Stat(id.logPath()); err == nil {
		if err := removeRetired(id.dir); err != nil {
			return id, fmt.Errorf("remove what was set aside before: %w", err)
		}
		if err := os.Rename(id.logPath(), aside); err != nil {
			return id, fmt.Errorf("set the retired log aside: %w", err)
		}
	}
	id.Log, id.Boot = newLogID(), bootID()
	return id, id.write()
}

func removeRetired(dir string) error {
	old, err := filepath.Glob(filepath.Join(dir, retiredDir+"*"))
	for _, path := range old {
		err = errors.Join(err, os.RemoveAll(path))
	}
	return err
}
