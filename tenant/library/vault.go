package library

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/ostrodb/ostro/internal/whole"
)

// Vault keeps code in a directory, a file for each, or in memory if it has no directory.
type Vault struct {
	dir string

	mu     sync.Mutex
	memory map[Sum][]byte
}

const codeSuffix = ".wasm"

// OpenVault makes the directory if need be. Empty: in memory.
func OpenVault(dir string) (*Vault, error) {
	v := &Vault{dir: dir, memory: map[Sum][]byte{}}
	if dir == "" {
		return v, nil
	}
	return v, os.MkdirAll(dir, 0o700)
}

func (v *Vault) path(s Sum) string { return filepath.Join(v.dir, s.String()+codeSuffix) }

// errDamaged is code that is not what its name says.
var errDamaged = errors.New("it is damaged: install the module again")

// Get returns code. fs.ErrNotExist: it is not there.
func (v *Vault) Get(s Sum) ([]byte, error) {
	if v.dir == "" {
		v.mu.Lock()
		defer v.mu.Unlock()
		if code, ok := v.memory[s]; ok {
			return code, nil
		}
		return nil, fs.ErrNotExist
	}
	code, err := os.ReadFile(v.path(s))
	if err == nil && SumOf(code) != s {
		err = fmt.Errorf("%s: %w", v.path(s), errDamaged)
	}
	return code, err
}

// Put keeps code, for good when it returns.
func (v *Vault) Put(s Sum, code []byte) error {
	if v.dir == "" {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.memory[s] = code
		return nil
	}
	if _, err := v.Get(s); err == nil {
		return nil
	}
	return whole.Write(v.path(s), code)
}

// Remove forgets code.
func (v *Vault) Remove(s Sum) {
	if v.dir == "" {
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.memory, s)
		return
	}
	_ = os.Remove(v.path(s)) // What stays is removed at the next start.
}

// Keep removes what is not wanted, and what was left half written.
func (v *Vault) Keep(wanted func(Sum) bool) {
	files, _ := os.ReadDir(v.dir) // Whoever cannot read it will be told so by Get.
	for _, f := range files {
		name, isCode := strings.CutSuffix(f.Name(), codeSuffix)
		var s Sum
		stale := isCode && (s.UnmarshalText([]byte(name)) != nil || !wanted(s))
		if stale || strings.HasSuffix(f.Name(), whole.Suffix) {
			_ = os.Remove(filepath.Join(v.dir, f.Name()))
		}
	}
}
