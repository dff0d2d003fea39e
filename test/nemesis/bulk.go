package nemesis

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
)

// bulk writes much, so that segments fill, close and are cleaned, and keeps a ledger of
// what was acknowledged.
type bulk struct {
	*Router
	ledger
	rng    *rand.Rand
	name   string
	writes atomic.Int64 // acknowledged
}

const (
	tags    = 200 // of a bulk writer, each a slot of its own
	perTag  = 8   // keys of a tag, written together
	padding = 2000
)

func (b *bulk) key(tag, n int) string { return fmt.Sprintf("{%s.%d}:%d", b.name, tag, n) }

// content is what version v of a key holds, of changing length.
func content(key string, v int) string { return filled(key, v, (v*7919+len(key))%padding) }

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
	var all []put
	for n := range perTag {
		key, v := b.key(tag, n), b.version()
		all = append(all, put{key, v, []string{"SET", key, content(key, v)}})
	}
	b.writes.Add(int64(b.put(&b.ledger, all)))
}

// verify reads all keys and compares them with the ledger.
func (b *bulk) verify() error {
	defer b.Close()
	var wrong error
	for tag := 0; tag < tags && b.Odd == ""; tag++ {
		var keys []string
		for n := range perTag {
			keys = append(keys, b.key(tag, n))
		}
		wrong = errors.Join(wrong, b.verifyKeys(&b.ledger, keys, content))
	}
	return wrong
}
