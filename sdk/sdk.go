// Package sdk holds what authors of functions need, and writes it to where they
// want to work: the SDK of their language and a small function to begin with. The
// SDKs themselves are in a folder per language.
//
// Nothing is fetched: what New writes builds with the language's tools alone.
// (AssemblyScript's compiler comes from npm, pinned by a lock file.)
package sdk

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"
)

//go:embed c/ostro.h rust/Cargo.toml rust/src as/ostro.ts as/package.json as/package-lock.json go/*.go template
var files embed.FS

// Language is one that functions can be written in.
type Language struct {
	Name    string // as users say it
	Title   string
	Install string // how its tools are had
	Source  string // where the functions are; NAME stands for the module's name
	SDK     string // where the SDK lies beside them
	vendor  map[string]string
}

// Languages are all of them.
func Languages() []Language {
	return []Language{
		{
			Name: "rust", Title: "Rust", Source: "src/lib.rs", SDK: "ostro",
			Install: "apt-get install make rustc libstd-rust-dev-wasm32    # or: rustup target add wasm32-unknown-unknown",
			vendor:  map[string]string{"rust": "ostro"},
		},
		{
			Name: "c", Title: "C", Source: "NAME.c", SDK: "ostro.h",
			Install: "apt-get install make clang lld",
			vendor:  map[string]string{"c/ostro.h": "ostro.h"},
		},
		{
			Name: "as", Title: "AssemblyScript", Source: "NAME.ts", SDK: "ostro.ts",
			Install: "apt-get install make nodejs npm",
			vendor: map[string]string{
				"as/ostro.ts": "ostro.ts", "as/package.json": "package.json", "as/package-lock.json": "package-lock.json",
			},
		},
		{
			Name: "go", Title: "Go", Source: "main.go", SDK: "ostro",
			Install: "apt-get install make    # and Go 1.24 or newer",
			vendor:  map[string]string{"go": "ostro"},
		},
	}
}

// Find returns the language of a name.
func Find(name string) (Language, bool) {
	for _, l := range Languages() {
		if l.Name == name {
			return l, true
		}
	}
	return Language{}, false
}

// ErrName is a name that no module can have.
var ErrName = errors.New("a name has 1 to 64 small letters, digits and underscores, begins with a letter, and is not ostro")

// ErrNotEmpty is a folder that has something in it already.
var ErrNotEmpty = errors.New("the folder is not empty")

var nameShape = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)

// New writes a module that builds, with the SDK beside it, into a folder that is
// empty or not there yet, and returns the files' names within it.
func New(dir, name string, l Language) ([]string, error) {
	if !nameShape.MatchString(name) || name == "ostro" {
		return nil, ErrName
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if len(entries) > 0 {
		return nil, fmt.Errorf("%s: %w", dir, ErrNotEmpty)
	}
	w := &writer{dir: dir, name: name, language: l}
	w.template("template/README.md.tmpl", "README.md")
	w.tree("template/"+l.Name, "", w.template)
	for from, to := range l.vendor {
		w.tree(from, to, w.plain)
	}
	return w.written, w.err
}

// writer copies files until one fails.
type writer struct {
	dir, name string
	language  Language
	written   []string
	err       error
}

// tree copies a file or all files of a folder.
func (w *writer) tree(from, to string, copy func(from, to string)) {
	err := fs.WalkDir(files, from, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rest := strings.TrimPrefix(strings.TrimPrefix(p, from), "/")
			copy(p, path.Join(to, rest))
		}
		return err
	})
	w.fail(err)
}

func (w *writer) plain(from, to string) {
	content, err := files.ReadFile(from)
	w.fail(err)
	w.write(to, content)
}

func (w *writer) template(from, to string) {
	t, err := template.ParseFS(files, from)
	w.fail(err)
	if w.err != nil {
		return
	}
	named := func(s string) string { return strings.ReplaceAll(s, "NAME", w.name) }
	var content bytes.Buffer
	w.fail(t.Execute(&content, map[string]string{
		"Name": w.name, "Language": w.language.Title, "Install": w.language.Install,
		"Source": named(w.language.Source), "SDK": w.language.SDK,
	}))
	w.write(named(strings.TrimSuffix(to, ".tmpl")), content.Bytes())
}

func (w *writer) write(name string, content []byte) {
	if w.err != nil {
		return
	}
	to := filepath.Join(w.dir, filepath.FromSlash(name))
	w.fail(os.MkdirAll(filepath.Dir(to), 0o755))
	w.fail(os.WriteFile(to, content, 0o644))
	w.written = append(w.written, name)
}

func (w *writer) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}
