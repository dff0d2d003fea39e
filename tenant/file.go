package tenant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/ostrodb/ostro/internal/whole"
)

// File is the book of a server on its own: a file in its data directory. Without a path it is kept
// in memory.
type File struct {
	path string

	mu      sync.Mutex
	catalog Catalog
	changed chan struct{}
}

// OpenFile reads the book, if there is one.
func OpenFile(path string) (*File, error) {
	f := &File{path: path, changed: make(chan struct{})}
	if path == "" {
		return f, nil
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &f.catalog); err != nil {
		return nil, fmt.Errorf("%s is damaged (%w): restore it from a backup, as it says which data is whose", path, err)
	}
	return f, nil
}

// Read implements Book.
func (f *File) Read(context.Context) (Catalog, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.catalog, nil
}

// Changed implements Book.
func (f *File) Changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

// Edit implements Book.
func (f *File) Edit(_ context.Context, edit func(*Catalog) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := f.catalog
	if err := edit(&next); err != nil {
		return err
	}
	if err := f.save(&next); err != nil {
		return fmt.Errorf("keep the tenants: %w", err)
	}
	f.catalog = next
	close(f.changed)
	f.changed = make(chan struct{})
	return nil
}

// save replaces the file by another one, whole.
func (f *File) save(c *Catalog) error {
	if f.path == "" {
		return nil
	}
	b, err := json.MarshalIndent(c, "", "\t")
	if err != nil {
		return err
	}
	return whole.Write(f.path, b)
}
