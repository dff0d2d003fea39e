package library

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/ostrodb/ostro/internal/whole"
)

// Files is the book of a server on its own: a directory with a file for each tenant and one for each code.
// Without a directory it is kept in memory.
type Files struct {
	dir   string
	vault *Vault

	mu    sync.Mutex
	pages map[Owner]Page
	users map[Sum]int // entries that name the code
}

const pageSuffix = ".json"

// OpenFiles reads the book, if there is one.
func OpenFiles(dir string) (*Files, error) {
	vault, err := OpenVault(dir)
	if err != nil {
		return nil, err
	}
	b := &Files{dir: dir, vault: vault, pages: map[Owner]Page{}, users: map[Sum]int{}}
	if dir == "" {
		return b, nil
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if name, ok := strings.CutSuffix(f.Name(), pageSuffix); ok {
			if err := b.readPage(name); err != nil {
				return nil, err
			}
		}
	}
	vault.Keep(func(s Sum) bool { return b.users[s] > 0 })
	return b, nil
}

func (b *Files) readPage(name string) error {
	path := filepath.Join(b.dir, name+pageSuffix)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var p Page
	err = json.Unmarshal(text, &p)
	if number, e := strconv.Atoi(name); err == nil && (e != nil || Owner(number) != p.Owner) {
		err = fmt.Errorf("it is owner %d's", p.Owner)
	}
	if err != nil {
		return fmt.Errorf("%s is damaged (%w): restore it from a backup, or remove it and install these functions again", path, err)
	}
	b.pages[p.Owner] = p
	b.count(p.Modules, 1)
	return nil
}

func (b *Files) count(modules map[string]Entry, n int) {
	for _, e := range modules {
		b.users[e.Sum] += n
	}
}

// Read implements Book.
func (b *Files) Read(context.Context) ([]Page, int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]Page, 0, len(b.pages))
	for _, p := range b.pages {
		all = append(all, p)
	}
	return all, 0, nil
}

// Follow implements Book: nobody else changes it.
func (b *Files) Follow(ctx context.Context, _ func([]Page, int64)) { <-ctx.Done() }

// Code implements Book.
func (b *Files) Code(_ context.Context, s Sum) ([]byte, error) {
	code, err := b.vault.Get(s)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s is missing: install the module again", b.vault.path(s))
	}
	return code, err
}

// Edit implements Book.
func (b *Files) Edit(_ context.Context, o Owner, code map[Sum][]byte, edit func(*Page) error) (Page, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	was, ok := b.pages[o]
	if !ok {
		was.Owner = o
	}
	next := was
	if err := edit(&next); err != nil {
		return was, err
	}
	next.Revision++
	err := b.putCode(&next, code)
	if err == nil {
		err = b.save(&next)
	}
	if err == nil {
		b.pages[o] = next
		b.count(next.Modules, 1)
		b.count(was.Modules, -1)
	}
	b.removeUnused(was.Modules, next.Modules)
	if err != nil {
		return was, fmt.Errorf("keep the functions: %w", err)
	}
	return next, nil
}

// putCode keeps the code of new entries.
func (b *Files) putCode(p *Page, code map[Sum][]byte) error {
	for _, e := range p.Modules {
		if bytes, ok := code[e.Sum]; ok {
			if err := b.vault.Put(e.Sum, bytes); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *Files) removeUnused(pages ...map[string]Entry) {
	for _, modules := range pages {
		for _, e := range modules {
			if b.users[e.Sum] == 0 {
				b.vault.Remove(e.Sum)
				delete(b.users, e.Sum)
			}
		}
	}
}

// save replaces the page's file by another one, whole. A page without modules stays while the server runs, for its
// revision; its file does not.
func (b *Files) save(p *Page) error {
	if b.dir == "" {
		return nil
	}
	path := filepath.Join(b.dir, strconv.Itoa(int(p.Owner))+pageSuffix)
	if len(p.Modules) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return whole.SyncDir(b.dir)
	}
	text, err := json.MarshalIndent(p, "", "\t")
	if err != nil {
		return err
	}
	return whole.Write(path, text)
}
