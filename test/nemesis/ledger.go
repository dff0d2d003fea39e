package nemesis

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/test/harness"
)

// bulk writes much, so that segments fill, close and are cleaned, and keeps a ledger of
// what was acknowledged. Its keys are its own: nobody else writes them.
type bulk struct {
	*Router
	rng     *rand.Rand
	name    string
	next    int              // versions only grow
	entries map[string]entry // by key
	writes  atomic.Int64     // acknowledged
}

// entry is what a key may hold: the version that was acknowledged last, or one whose answer
// was lost, for that may take effect at any later moment.
type entry struct {
	acknowledged int
	lost         []int
}

const (
	tags    = 200 // of a bulk writer, each a slot of its own
	perTag  = 8   // keys of a tag, written together
	padding = 2000
)

func (b *bulk) key(tag, n int) string { return fmt.Sprintf("{%s.%d}:%d", b.name, tag, n) }

// content is what version v of a key holds: of changing length, all of it its own.
func content(key string, v int) string {
	head := fmt.Sprintf("%s=%d;", key, v)
	return head + strings.Repeat(string(rune('a'+v%26)), (v*7919+len(key))%padding)
}

// run writes until it is told to stop.
func (b *bulk) run(stop <-chan struct{}) {
	defer b.Close()
	for b.Odd == "" {
		select {
		case <-stop:
			return
		default:
			b.write(b.rng.IntN(tags))
		}
	}
}

// write writes all keys of a tag.
func (b *bulk) write(tag int) {
	var commands [][]string
	versions := map[int]int{}
	for n := range perTag {
		b.next++
		versions[n] = b.next
		key := b.key(tag, n)
		commands = append(commands, []string{"SET", key, content(key, b.next)})
		e := b.entries[key]
		e.lost = append(e.lost, b.next) // Until it is answered.
		b.entries[key] = e
	}
	replies, _ := b.Try(b.key(tag, 0), commands...)
	for n, v := range replies {
		key := b.key(tag, n)
		e := b.entries[key]
		e.lost = e.lost[:len(e.lost)-1]
		if v.Err() == nil { // Else it was not executed.
			b.writes.Add(1)
			e.acknowledged = versions[n]
		}
		b.entries[key] = e
	}
	if replies == nil {
		b.pause()
	}
}

// verify reads all keys and compares them with the ledger.
func (b *bulk) verify() error {
	defer b.Close()
	for tag := range tags {
		command := []string{"MGET"}
		for n := range perTag {
			command = append(command, b.key(tag, n))
		}
		values, err := b.read(command)
		if err != nil {
			return err
		}
		for n, v := range values {
			if err := b.compare(b.key(tag, n), v); err != nil {
				return err
			}
		}
	}
	return nil
}

// read asks until it gets an answer: reading twice does no harm.
func (b *bulk) read(command []string) (values []string, err error) {
	for end := time.Now().Add(harness.Patience); time.Now().Before(end) && b.Odd == ""; {
		replies, fate := b.Do(command[1], command)
		if fate != Answered {
			continue
		}
		for _, e := range replies[0].Elems {
			values = append(values, harness.Text(e))
		}
		return values, nil
	}
	return nil, fmt.Errorf("%s could not be read within %s: %s %v", command[1], harness.Patience, b.Odd, b.Refusals)
}

func (b *bulk) compare(key, value string) error {
	e := b.entries[key]
	if value == "(nil)" && e.acknowledged == 0 {
		return nil
	}
	_, rest, _ := strings.Cut(value, "=")
	digits, _, _ := strings.Cut(rest, ";")
	v, err := strconv.Atoi(digits)
	allowed := v == e.acknowledged
	for _, s := range e.lost {
		allowed = allowed || v == s
	}
	switch {
	case err != nil || value != content(key, v):
		return fmt.Errorf("%s holds %.60q, which nobody wrote; version %d was acknowledged", key, value, e.acknowledged)
	case !allowed:
		return fmt.Errorf("%s holds version %d; version %d was acknowledged, and %v had no answer", key, v, e.acknowledged, e.lost)
	}
	return nil
}
