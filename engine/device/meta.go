package device

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// MetaReader has metadata to read: a Device, or a MetaDir.
type MetaReader interface {
	ReadMeta(name string) ([]byte, error)
}

// MetaDir reads the metadata of a Disk's directory without opening it, so also
// beside the process that uses it.
type MetaDir string

// ReadMeta reads the whole of the named metadata.
func (d MetaDir) ReadMeta(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(string(d), name))
}

// ReadJSON decodes the named metadata; false if there is none.
func ReadJSON(r MetaReader, name string, into any) (bool, error) {
	b, err := r.ReadMeta(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read %s: %w", name, err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		return false, fmt.Errorf("%s is damaged (%w): restore it from a copy of the data directory", name, err)
	}
	return true, nil
}
