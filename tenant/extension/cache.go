package extension

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The cache has two files of a module:
//
//	rewritten/NAME    as it was rewritten; rewrittenPath names it, by the module's bytes and limits
//	wazero-*/NAME     as it was compiled; the compiler names it, by the rewritten bytes and the processor
//
// Both are put in place as a whole, and any of them may go at any time: what is missing is made again.

// digest is what the compiler knows rewritten code by. One byte says that it adds no checks of a context.
func digest(rewritten []byte) [sha256.Size]byte {
	h := sha256.New()
	h.Write(rewritten)
	h.Write([]byte{0})
	return [sha256.Size]byte(h.Sum(nil))
}

// processors is how many kinds of a processor the compiler tells apart, by three bits.
const processors = 8

// compiledNames are the files that the compiler may keep of rewritten code. Whichever processor this is, it is one of them.
func compiledNames(d [sha256.Size]byte) (names [processors]string) {
	for kind := range names {
		b := append(d[:], "WAZEVO"...)
		sum := sha256.Sum256(binary.LittleEndian.AppendUint64(b, uint64(kind)))
		names[kind] = hex.EncodeToString(sum[:])
	}
	return names
}

// noteCompiled counts what the compiler has kept of a module that was just compiled.
func (r *Runtime) noteCompiled(rewritten []byte) {
	if r.opts.CacheDir == "" {
		return
	}
	dirs, _ := filepath.Glob(filepath.Join(r.opts.CacheDir, "wazero-*")) // The pattern is a good one.
	var sum int64
	for _, name := range compiledNames(digest(rewritten)) {
		for _, dir := range dirs { // Nothing lists them: they have a file of every module.
			if info, err := os.Stat(filepath.Join(dir, name)); err == nil {
				sum += info.Size()
			}
		}
	}
	r.cached.Add(sum)
}

// Cached is how many bytes came to the cache since it was last trimmed. What the compiler found there already counts, too.
func (r *Runtime) Cached() int64 { return r.cached.Load() }

// cacheFile is one of the cache.
type cacheFile struct {
	path  string
	bytes int64
	at    time.Time
}

// unfinishedAge is after how long a file that was never put in place is nobody's any more.
const unfinishedAge = time.Hour

// TrimCache removes what is of no module that is wanted, by the sums of their code, and of none that somebody has compiled
// now; and of the rest the oldest beyond most bytes. Modules that come meanwhile lose nothing: what is there is listed
// before it is asked who wants it.
func (r *Runtime) TrimCache(wanted func() [][sha256.Size]byte, limits Limits, most int64) {
	if r.opts.CacheDir == "" {
		return
	}
	r.cached.Store(0)
	files := r.cacheFiles()
	keep := r.cacheNames(wanted(), limits)
	var sum int64
	files = slices.DeleteFunc(files, func(f cacheFile) bool {
		name := filepath.Base(f.path)
		stale := !keep[name]
		if unfinished(name) {
			stale = time.Since(f.at) > unfinishedAge
		}
		if stale && os.Remove(f.path) == nil {
			return true
		}
		sum += f.bytes
		return false
	})
	slices.SortFunc(files, func(a, b cacheFile) int { return a.at.Compare(b.at) })
	for _, f := range files {
		if sum <= most {
			return
		}
		if os.Remove(f.path) == nil {
			sum -= f.bytes
		}
	}
}

// unfinished tells of a file that is being written, or was when the process died.
func unfinished(name string) bool {
	return strings.HasPrefix(name, newPrefix) || strings.HasSuffix(name, ".tmp")
}

func (r *Runtime) cacheFiles() (all []cacheFile) {
	_ = filepath.WalkDir(r.opts.CacheDir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // What cannot be seen is not removed.
		}
		if info, err := d.Info(); err == nil {
			all = append(all, cacheFile{path, info.Size(), info.ModTime()})
		}
		return nil
	})
	return all
}

// cacheNames are the files of modules, and of all that are in use.
func (r *Runtime) cacheNames(sums [][sha256.Size]byte, limits Limits) map[string]bool {
	keys := map[moduleKey]bool{}
	for _, sum := range sums {
		keys[moduleKey{sum, limits.Module}] = true
	}
	names := map[string]bool{}
	r.mu.Lock()
	for key := range r.modules {
		keys[key] = true
	}
	r.mu.Unlock()
	for key := range keys {
		path := r.rewrittenPath(key)
		names[filepath.Base(path)] = true
		if d, ok := keptDigest(path); ok {
			for _, name := range compiledNames(d) {
				names[name] = true
			}
		}
	}
	return names
}

// keptDigest reads from the head of a rewritten module what the compiler knows it by. A file that is damaged names another,
// and its module is compiled again.
func keptDigest(path string) (d [sha256.Size]byte, ok bool) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return d, false // Somebody else's, and perhaps nothing ever comes from it.
	}
	f, err := os.Open(path)
	if err != nil {
		return d, false
	}
	defer f.Close()
	var head [sha256.Size + 4]byte
	if _, err := io.ReadFull(f, head[:]); err != nil {
		return d, false
	}
	length := int64(binary.LittleEndian.Uint32(head[sha256.Size:]))
	var text bytes.Buffer
	if _, err := io.CopyN(&text, f, length); err != nil {
		return d, false
	}
	var k kept
	if json.Unmarshal(text.Bytes(), &k) != nil || len(k.Digest) != len(d) {
		return d, false
	}
	return [sha256.Size]byte(k.Digest), true
}
