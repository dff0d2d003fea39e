// Package local is data for functions that run without a server: a table of
// keys in memory, read from a file and written back to one. It keeps what
// extension.Store promises, so that a function does here what it does in a cluster
// of one node.
package local

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ostrodb/ostro/tenant/extension"
)

// ErrConflict is a commit of a call that read what has changed meanwhile.
var ErrConflict = errors.New("another call changed what this one read: call it again")

// scanMost is how many keys one call of Scan looks at.
const scanMost = 1024

// Store has the tables of one tenant. Calls may use it at the same time.
type Store struct {
	mu      sync.Mutex
	version uint64
	records map[name]record
	order   []name // of all keys that ever were, for cursors
	now     func() time.Time
}

type name struct {
	table uint32
	key   string
}

type record struct {
	value   []byte // never changed
	version uint64
	expires time.Time // zero: never
}

// New is a store without keys. The clock decides what has expired; nil is the machine's.
func New(clock func() time.Time) *Store {
	if clock == nil {
		clock = time.Now
	}
	return &Store{records: map[name]record{}, now: clock}
}

var _ extension.Store = (*Store)(nil)

func (s *Store) find(n name) (record, bool) {
	r, ok := s.records[n]
	if !ok || r.version == 0 || !r.expires.IsZero() && !s.now().Before(r.expires) {
		return record{}, false
	}
	return r, true
}

// Get copies a value.
func (s *Store) Get(table uint32, key, buf []byte, v *extension.Value) extension.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.find(name{table, string(key)})
	if !ok {
		return extension.Absent
	}
	v.Len, v.Version = len(r.value), r.version
	if len(r.value) <= len(buf) {
		copy(buf, r.value)
	} else {
		v.Whole = r.value
	}
	return extension.OK
}

// Scan visits keys in the order in which they were first written.
func (s *Store) Scan(table uint32, cursor uint64, prefix []byte, visit func(key, value []byte) bool) (next uint64, looked int, st extension.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	end := min(uint64(len(s.order)), cursor+scanMost)
	for ; cursor < end; cursor++ {
		looked++
		n := s.order[cursor]
		if n.table != table || !bytes.HasPrefix([]byte(n.key), prefix) {
			continue
		}
		if r, ok := s.find(n); ok && !visit([]byte(n.key), r.value) {
			return cursor, looked, extension.OK
		}
	}
	if cursor >= uint64(len(s.order)) {
		return 0, looked, extension.OK
	}
	return cursor, looked, extension.OK
}

// Commit applies what a call wrote, if nothing that it read has changed.
func (s *Store) Commit(c *extension.Changes) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range c.Reads {
		have, _ := s.find(name{r.Table, string(r.Key)})
		if have.version != r.Version {
			return ErrConflict
		}
	}
	for _, w := range c.Writes {
		s.apply(w)
	}
	return nil
}

func (s *Store) apply(w extension.Write) {
	n := name{w.Table, string(w.Key)}
	if w.Delete {
		if _, ok := s.records[n]; ok {
			s.records[n] = record{}
		}
		return
	}
	if _, known := s.records[n]; !known {
		s.order = append(s.order, n)
	}
	s.version++
	r := record{value: w.Value, version: s.version}
	if w.TTL > 0 {
		r.expires = s.now().Add(w.TTL)
	}
	s.records[n] = r
}

// Len counts keys.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for name := range s.records {
		if _, ok := s.find(name); ok {
			n++
		}
	}
	return n
}

// names are all keys that are there, in order of table and key.
func (s *Store) names() []name {
	var all []name
	for n := range s.records {
		if _, ok := s.find(n); ok {
			all = append(all, n)
		}
	}
	slices.SortFunc(all, func(a, b name) int {
		if a.table != b.table {
			return int(a.table) - int(b.table)
		}
		return bytes.Compare([]byte(a.key), []byte(b.key))
	})
	return all
}
