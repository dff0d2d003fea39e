package main

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/server"
)

// replicaMemory is anonymous memory, or a file's.
func replicaMemory(path string, bytes int) (*fabric.Memory, error) {
	if path == "" {
		return fabric.NewMemory(bytes)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the memory's file: %w", err)
	}
	defer f.Close()
	if err := reserve(f, bytes); err != nil {
		return nil, err
	}
	return fabric.MapFile(f, 0, bytes)
}

// reserve makes a file its process' own, and its room on disk certain: a full
// disk must be noticed now, not by a write that a client was told of.
func reserve(f *os.File, bytes int) error {
	// The mapping keeps a duplicate of the descriptor, and with it the lock.
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			return fmt.Errorf("%s is the memory of another replica that runs; give this one a file of its own", f.Name())
		}
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if size := st.Size(); size != 0 && size != int64(bytes) {
		return usagef("%s has %d bytes, and --memory is %s; give --memory %d to keep it, or another file",
			f.Name(), size, server.Size(bytes), size)
	}
	if err := unix.Fallocate(int(f.Fd()), 0, 0, int64(bytes)); err != nil {
		return fmt.Errorf("reserve %s for %s: %w", server.Size(bytes), f.Name(), err)
	}
	return f.Sync()
}

// syncFile leaves a file-backed memory on its disk.
func syncFile(path string, mem *fabric.Memory) error {
	if path == "" {
		return nil
	}
	if err := mem.File().Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", path, err)
	}
	return nil
}
