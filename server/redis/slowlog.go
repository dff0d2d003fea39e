package redis

import (
	"fmt"
	"sync"
)

// As Redis: a slow log entry keeps so many arguments, each so long.
const (
	slowlogArgs     = 32
	slowlogArgBytes = 128
)

// slowlog keeps the last commands that took too long, newest last.
type slowlog struct {
	mu      sync.Mutex
	entries []slowEntry
	nextID  int64
	maxLen  int
}

// slowEntry is one slow command. It owns its strings.
type slowEntry struct {
	id     int64
	at     int64 // unix seconds
	micros int64
	args   []string
	addr   string
	name   string
}

// add logs a command; the arguments are copied, shortened as Redis does.
func (l *slowlog) add(c *call, micros int64) {
	e := slowEntry{
		at: c.now / 1000, micros: micros, args: shortened(c.args),
		addr: c.conn.addr, name: load(&c.conn.name),
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e.id = l.nextID
	l.nextID++
	l.entries = append(l.entries, e)
	l.trim()
}

// newest returns up to n entries, newest first; n < 0: all.
func (l *slowlog) newest(n int) []slowEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n < 0 || n > len(l.entries) {
		n = len(l.entries)
	}
	out := make([]slowEntry, 0, n)
	for i := range n {
		out = append(out, l.entries[len(l.entries)-1-i])
	}
	return out
}

func (l *slowlog) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.entries)
}

func (l *slowlog) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = nil
}

func (l *slowlog) setMaxLen(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.maxLen = n
	l.trim()
}

func (l *slowlog) getMaxLen() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.maxLen
}

// trim drops the oldest entries. The caller holds mu.
func (l *slowlog) trim() {
	if over := len(l.entries) - l.maxLen; over > 0 {
		l.entries = append(l.entries[:0], l.entries[over:]...)
	}
}

func shortened(args [][]byte) []string {
	n := min(len(args), slowlogArgs)
	out := make([]string, 0, n)
	for i, a := range args[:n] {
		switch {
		case i == slowlogArgs-1 && len(args) > slowlogArgs:
			out = append(out, fmt.Sprintf("... (%d more arguments)", len(args)-slowlogArgs+1))
		case len(a) > slowlogArgBytes:
			out = append(out, fmt.Sprintf("%s... (%d more bytes)", a[:slowlogArgBytes], len(a)-slowlogArgBytes))
		default:
			out = append(out, string(a))
		}
	}
	return out
}
