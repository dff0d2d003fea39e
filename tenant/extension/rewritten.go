package extension

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ostrodb/ostro/tenant/extension/meter"
)

// rewrittenDir is where the cache keeps modules as they were rewritten, beside what the compiler keeps: rewriting takes
// longer than all else that a first call after a restart does.
//
//	file := sha256 of all that follows   u32 length of the description   description, JSON   module
const rewrittenDir = "rewritten"

// kept is what is known about a rewritten module.
type kept struct {
	About   *Description `json:"about"`
	Entries []string     `json:"entries"`
	Digest  []byte       `json:"digest"` // what the compiler knows it by
}

// newPrefix is how names of files begin that are being written.
const newPrefix = "new-"

// cacheTrouble is how the compiler's errors begin that say that a file of its cache is damaged. It would say so for ever.
const cacheTrouble = "compilationcache: "

// emptyCache removes what the compiler has kept, to be compiled again; false: there is nothing to remove.
func (r *Runtime) emptyCache() (removed bool) {
	dirs, _ := os.ReadDir(r.opts.CacheDir) // Of what cannot be read nothing is removed.
	for _, d := range dirs {
		if d.Name() == rewrittenDir {
			continue
		}
		dir := filepath.Join(r.opts.CacheDir, d.Name())
		files, _ := os.ReadDir(dir)
		for _, f := range files {
			removed = os.Remove(filepath.Join(dir, f.Name())) == nil || removed
		}
	}
	return removed
}

// rewrite takes a module from the cache, or checks and rewrites it and leaves it there.
func (r *Runtime) rewrite(key moduleKey, code []byte, limits Limits) (*Description, []byte, error) {
	if r.opts.CacheDir == "" || r.opts.Unmetered {
		return inspect(code, limits, r.opts.Unmetered)
	}
	path := r.rewrittenPath(key)
	if b, err := os.ReadFile(path); err == nil {
		if about, module, ok := decodeKept(b); ok {
			return about, module, nil
		}
	}
	about, module, err := inspect(code, limits, false)
	if err != nil {
		return nil, nil, err
	}
	// A cache that cannot be written costs time at the next start, and nothing else.
	if b := encodeKept(about, module); writeKept(path, b) == nil {
		r.cached.Add(int64(len(b)))
	}
	return about, module, nil
}

// rewrittenPath is of the module's bytes, its limits, and what the rewriter writes.
func (r *Runtime) rewrittenPath(key moduleKey) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %x %+v", meter.Version, key.sum, key.limits))
	return filepath.Join(r.opts.CacheDir, rewrittenDir, hex.EncodeToString(sum[:]))
}

func encodeKept(about *Description, module []byte) []byte {
	d := digest(module)
	text, err := json.Marshal(kept{about, about.Metering.Entries, d[:]})
	if err != nil {
		panic(err) // It has strings and numbers only.
	}
	b := make([]byte, sha256.Size, sha256.Size+4+len(text)+len(module))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(text)))
	b = append(append(b, text...), module...)
	sum := sha256.Sum256(b[sha256.Size:])
	copy(b, sum[:])
	return b
}

func decodeKept(b []byte) (*Description, []byte, bool) {
	if len(b) < sha256.Size+4 {
		return nil, nil, false
	}
	sum := sha256.Sum256(b[sha256.Size:])
	n := int(binary.LittleEndian.Uint32(b[sha256.Size:]))
	rest := b[sha256.Size+4:]
	if !bytes.Equal(sum[:], b[:sha256.Size]) || n > len(rest) {
		return nil, nil, false
	}
	var k kept
	if json.Unmarshal(rest[:n], &k) != nil || k.About == nil || len(k.Digest) != sha256.Size {
		return nil, nil, false
	}
	k.About.Metering.Entries = k.Entries
	return k.About, rest[n:], true
}

// writeKept puts a file in place as a whole.
func writeKept(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), newPrefix+"*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
