package nemesis

import (
	"errors"
	"fmt"
	"time"

	"github.com/ostrodb/ostro/test/harness"
	"github.com/ostrodb/ostro/wire/resp"
)

// put is a write of one version of a key.
type put struct {
	key     string
	version int
	command []string
}

// put writes keys of one slot together, once, and notes in a ledger what became of each. It tells how many were acknowledged.
func (r *Router) put(l *ledger, all []put) (acknowledged int) {
	var commands [][]string
	for _, p := range all {
		commands = append(commands, p.command)
		l.begin(p.key, p.version)
	}
	replies, _ := r.Try(all[0].key, commands...)
	for i, v := range replies {
		done := v.Err() == nil // Else it was not executed.
		l.end(all[i].key, all[i].version, done)
		if done {
			acknowledged++
		}
	}
	if replies == nil {
		r.pause()
	}
	return acknowledged
}

// verifyKeys reads keys of one slot and compares them with a ledger.
func (r *Router) verifyKeys(l *ledger, keys []string, content func(key string, v int) string) error {
	replies, err := r.ask(keys[0], append([]string{"MGET"}, keys...))
	if err != nil {
		return err
	}
	var wrong error
	for i, v := range replies[0].Elems {
		wrong = errors.Join(wrong, l.compare(keys[i], harness.Text(v), content))
	}
	return wrong
}

// ask asks until it gets answers: reading twice does no harm.
func (r *Router) ask(key string, commands ...[]string) ([]resp.Value, error) {
	for end := time.Now().Add(harness.Patience); time.Now().Before(end) && r.Odd == ""; {
		if replies, fate := r.Do(key, commands...); fate == Answered {
			return replies, nil
		}
	}
	return nil, fmt.Errorf("%s could not be read within %s: %s %v", key, harness.Patience, r.Odd, r.Refusals)
}
