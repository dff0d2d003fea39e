package nemesis

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/ostrodb/ostro/test/harness"
)

// Faults of disks. A full one needs clusters whose nodes have small disks.
var (
	fillDisk = Fault{"a node whose disk is full", func(g *game) error {
		n := g.victim()
		remove, err := fill(n)
		if err != nil {
			return err
		}
		g.say("the disk of %s is full", n.ID)
		g.hold(2*time.Second, 5*time.Second)
		g.say("the disk of %s has room again", n.ID)
		return remove()
	}, false}

	fillDiskAndKill = Fault{"a node with a full disk that is killed", func(g *game) error {
		n := g.victim()
		remove, err := fill(n)
		if err != nil {
			return err
		}
		g.say("the disk of %s is full", n.ID)
		g.hold(time.Second, 3*time.Second)
		n.Kill()
		err = g.replaced(n)
		return errors.Join(err, remove(), n.Start())
	}, true}

	corruptReplicas = Fault{"replicas that were changed on disk, and kill -9 of a node they are of", func(g *game) error {
		keeper, dead := g.pair()
		if err := spoilSome(g, keeper); err != nil {
			return err
		}
		dead.Kill()
		g.say("%s was killed", dead.ID)
		if err := g.replaced(dead); err != nil {
			return err
		}
		return dead.Start()
	}, true}
)

// fill leaves no room on a node's disk, until remove is called.
func fill(n *harness.Node) (remove func() error, err error) {
	name := filepath.Join(n.Dir, "ballast")
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for chunk := 1 << 20; chunk >= 512; {
		if _, err = f.Write(make([]byte, chunk)); err != nil {
			chunk /= 2
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return nil, fmt.Errorf("the disk of %s does not run full: %w", n.ID, err)
	}
	return func() error { return os.Remove(name) }, nil
}

// spoilSome changes replicas that a node has. It waits a little for closed ones, if there are none.
func spoilSome(g *game, n *harness.Node) error {
	for range 5 {
		changed, err := spoil(g, n)
		if err != nil {
			return err
		}
		g.say("%d replicas that %s has were changed", changed, n.ID)
		if g.spoiled += changed; changed > 0 {
			return nil
		}
		if err := g.writes(g.load.Writes() + writesBefore); err != nil {
			return err
		}
	}
	return nil
}

// spoil changes a byte of about every second closed replica that a node has, of one at least, and returns how many.
func spoil(g *game, n *harness.Node) (changed int, err error) {
	return changed, filepath.WalkDir(n.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !strings.Contains(path, "/replicas/") {
			return ignoreGone(err)
		}
		if changed > 0 && g.rng.IntN(2) == 0 {
			return nil
		}
		if err := flip(path, g.rng.Int64N(1<<20)); err != nil {
			return ignoreGone(err)
		}
		changed++
		return nil
	})
}

// flip changes one byte of a file.
func flip(path string, at int64) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, at%info.Size()); err != nil {
		return err
	}
	b[0] ^= 0x40
	_, err = f.WriteAt(b, at%info.Size())
	return err
}

// ignoreGone forgives files that a node removes meanwhile.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
