package extension

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// table is data that never changes, and the order in which it is scanned.
type table struct {
	values map[string][]byte
	order  []string
}

// modelTables are what every model begins with: tables 0 and 1, and no others.
var modelTables = [...]*table{
	newTable(map[string][]byte{
		"": []byte("empty"), "\x00": make([]byte, 300), "\x00\x00": {},
		"a": pattern(300), "bb": {}, "far": pattern(9), "first": pattern(40), "large": pattern(5000), "huge!!": pattern(70_000),
	}),
	newTable(map[string][]byte{"a": pattern(7), "other": pattern(3)}),
}

// newTable adds keys of values of all lengths up to twenty.
func newTable(values map[string][]byte) *table {
	for i := range 20 {
		values[fmt.Sprintf("key%02d", i)] = pattern(i)
	}
	t := &table{values: values}
	for k := range values {
		t.order = append(t.order, k)
	}
	slices.Sort(t.order)
	return t
}

// pattern is bytes that differ from their neighbours.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + n)
	}
	return b
}

// moving is a key that others write all the time: each read finds another value.
const moving = "moving"

// scanMost is how many records one scan looks at.
const scanMost = 8

var errUnlucky = errors.New("it conflicts")

// model is a store that checks what it is handed.
type model struct {
	t         testing.TB
	committed int     // changes
	compared  int     // reads of calls that wrote nothing
	last      Changes // that were committed
	moved     int     // reads of what moves
	told      []toldKey
	later     bool // it would have to wait for some keys
	partial   bool // some keys are elsewhere
	unlucky   bool // it takes no commit
}

// toldKey is a key that will be read, and its bytes when that was said.
type toldKey struct{ key, then []byte }

// standing is what can be said about a key without looking for it.
func (s *model) standing(table uint32, key []byte) Status {
	switch {
	case int(table) >= len(modelTables):
		return NoSuchTable
	case s.later && len(key)%7 == 3:
		return Later
	case s.partial && len(key)%5 == 4:
		return Elsewhere
	}
	return OK
}

func (s *model) Place(table uint32, key []byte) Status { return s.standing(table, key) }

func (s *model) Ahead(_ uint32, keys [][]byte) {
	s.told = s.told[:0]
	for _, k := range keys {
		s.told = append(s.told, toldKey{k, bytes.Clone(k)})
	}
}

func (s *model) Get(table uint32, key, buf []byte, got *Value) Status {
	s.check(key)
	if st := s.standing(table, key); st != OK {
		return st
	}
	v, ok := modelTables[table].values[string(key)]
	if string(key) == moving {
		s.moved++
		v, ok = pattern(50*s.moved), true
	}
	if !ok {
		return Absent
	}
	got.Len, got.Version = len(v), 1
	switch {
	case len(v) <= len(buf):
		copy(buf, v)
	case got.Room(len(v)):
		got.Whole = v
	}
	return OK
}

// check finds keys that may not come here: too long ones, and those that are not what they were said to be.
func (s *model) check(key []byte) {
	if len(key) > keyMost {
		s.t.Errorf("a key of %d bytes came through", len(key))
	}
	for _, k := range s.told {
		if len(key) > 0 && len(k.key) == len(key) && &k.key[0] == &key[0] && !bytes.Equal(key, k.then) {
			s.t.Errorf("%q is read, and %q was told", key, k.then)
		}
	}
}

func (s *model) Prompt(key, buf []byte, got *Value) bool {
	return s.Get(0, key, buf, got) == OK && got.Len <= len(buf)
}

func (s *model) Scan(table uint32, cursor uint64, prefix []byte, visit func(key, value []byte) bool) (next uint64, looked int, st Status) {
	if st := s.standing(table, prefix); st != OK {
		return 0, 0, st
	}
	t := modelTables[table]
	for ; cursor < uint64(len(t.order)); cursor++ {
		if looked == scanMost {
			return cursor, looked, OK
		}
		looked++
		if k := t.order[cursor]; strings.HasPrefix(k, string(prefix)) && !visit([]byte(k), t.values[k]) {
			return cursor, looked, OK
		}
	}
	return 0, looked, OK
}

func (s *model) Commit(c *Changes) error {
	if s.unlucky {
		return errUnlucky
	}
	switch {
	case len(c.Writes) > 0:
		s.committed++
	case len(c.Reads) > 1: // They are to be of one moment.
		s.compared++
	default:
		s.t.Errorf("a commit of nothing, and of %d reads", len(c.Reads))
	}
	seen := map[writeKey]bool{}
	for _, w := range c.Writes {
		name := writeKey{w.Table, string(w.Key)}
		if seen[name] || len(w.Key) > keyMost {
			s.t.Errorf("two writes of key %q, or one that is too long", w.Key)
		}
		seen[name] = true
	}
	s.keep(c)
	return nil
}

// keep notes what was committed. What was written is the store's and stays as it is; all else may change after the commit.
func (s *model) keep(c *Changes) {
	s.last = Changes{Writes: slices.Clone(c.Writes), Response: bytes.Clone(c.Response)}
	for _, r := range c.Reads {
		r.Key = bytes.Clone(r.Key)
		s.last.Reads = append(s.last.Reads, r)
	}
}

// verdict says what is wrong with how a call has ended, if anything is: it is all or nothing, and nobody's fault.
func (s *model) verdict(res *Result, err error, trial bool) error {
	var e *CallError
	left := s.committed+s.compared > 0 || res.Response != nil
	switch {
	case err == ErrAbandoned && trial && !left:
	case err != nil && (!errors.As(err, &e) || e.Kind == Broken):
		return fmt.Errorf("it broke: %w", err)
	case err != nil && left:
		return fmt.Errorf("it failed and left something: %w", err)
	case err == nil && (s.committed > 0) != (res.Writes > 0):
		return fmt.Errorf("%d writes, %d commits", res.Writes, s.committed)
	}
	return nil
}
