package library

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// cacheBytes is how much compiled code is kept on disk at a start: what was deleted or replaced long ago is still there.
const cacheBytes = 1 << 30

// trimCache removes the oldest of what is too much. What is missing is compiled again.
func (l *Library) trimCache() {
	if l.opts.CacheDir == "" {
		return
	}
	type file struct {
		path  string
		bytes int64
		at    time.Time
	}
	var all []file
	var sum int64
	_ = filepath.WalkDir(l.opts.CacheDir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // What cannot be seen is not removed.
		}
		if info, err := d.Info(); err == nil {
			all = append(all, file{path, info.Size(), info.ModTime()})
			sum += info.Size()
		}
		return nil
	})
	slices.SortFunc(all, func(a, b file) int { return a.at.Compare(b.at) })
	for _, f := range all {
		if sum <= cacheBytes {
			return
		}
		if os.Remove(f.path) == nil {
			sum -= f.bytes
		}
	}
}
