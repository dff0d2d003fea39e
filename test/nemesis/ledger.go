package nemesis

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ledger is what the keys of one writer may hold. Nobody else writes them.
type ledger struct {
	last    int              // versions only grow
	entries map[string]entry // by key
}

// entry is what a key may hold: the version that was acknowledged last, or one whose answer
// was lost, for that may take effect at any later moment. Version 0 is none.
type entry struct {
	acknowledged int
	lost         []int
}

func newLedger() ledger { return ledger{entries: map[string]entry{}} }

// version is one that was never written.
func (l *ledger) version() int {
	l.last++
	return l.last
}

// begin notes a version that is about to be written. Its answer counts as lost until end.
func (l *ledger) begin(key string, v int) {
	e := l.entries[key]
	e.lost = append(e.lost, v)
	l.entries[key] = e
}

// end notes the answer to what was begun last. If it was not done, it never will be.
func (l *ledger) end(key string, v int, done bool) {
	e := l.entries[key]
	e.lost = e.lost[:len(e.lost)-1]
	if done {
		e.acknowledged = v
	}
	l.entries[key] = e
}

// compare says what is wrong with the value of a key.
func (l *ledger) compare(key, value string, content func(key string, v int) string) error {
	e, v := l.entries[key], 0
	if value != nothing {
		_, rest, _ := strings.Cut(value, "=")
		digits, _, _ := strings.Cut(rest, ";")
		var err error
		if v, err = strconv.Atoi(digits); err != nil || value != content(key, v) {
			return fmt.Errorf("%s holds %.60q, %d bytes, which nobody wrote; version %d was acknowledged", key, value, len(value), e.acknowledged)
		}
	}
	if v != e.acknowledged && !slices.Contains(e.lost, v) {
		return fmt.Errorf("%s holds version %d; version %d was acknowledged, and %v had no answer (0 is none)", key, v, e.acknowledged, e.lost)
	}
	return nil
}

// nothing is how harness.Text shows what is not there.
const nothing = "(nil)"

// filled is what version v of a key holds: all of it its own.
func filled(key string, v, bytes int) string {
	head := fmt.Sprintf("%s=%d;", key, v)
	return head + strings.Repeat(string(rune('a'+v%26)), bytes)
}
