package library

const (
	// cacheBytes is how much compiled code is kept on disk, of modules that are installed.
	cacheBytes = 1 << 30
	// trimBytes is after how much more of it the cache is rid of what was deleted, replaced, or refused.
	trimBytes = 64 << 20
)

// trimCache removes what is of no module that is installed, or being installed. What is missing is compiled again.
func (l *Library) trimCache() {
	l.runtime.TrimCache(l.sums, l.opts.Limits.Extension, cacheBytes)
	if l.opts.Keep != nil {
		installed := map[Sum]bool{}
		for _, s := range l.sums() {
			installed[s] = true
		}
		l.opts.Keep(func(s Sum) bool { return installed[s] })
	}
}

// trimGrown trims the cache once after a start, and then whenever much came to it.
func (l *Library) trimGrown() {
	if r := l.begun.Load(); r != nil && (!l.trimmed.Swap(true) || r.Cached() >= l.opts.TrimBytes) {
		l.trimCache()
	}
}

// sums names the code of all that is installed.
func (l *Library) sums() (all [][len(Sum{})]byte) {
	for _, s := range l.all() {
		for _, e := range s.content.Load().editions {
			all = append(all, e.entry.Sum)
		}
	}
	return all
}
