package call

import (
	"unsafe"

	"github.com/ostrodb/ostro/engine/store"
)

// ahead is keys of which a guest has said that it will read them next, in this order: their records are on the way to
// the processor. Their bytes are the guest's, who does not run meanwhile.
type ahead struct {
	table uint32
	keys  []store.Key
	left  int // the last so many are still to be read
}

// has tells that a key is the next one.
func (a *ahead) has(table uint32, key []byte) bool {
	if a.left == 0 || table != a.table {
		return false
	}
	next := a.keys[len(a.keys)-a.left].Bytes
	return len(next) == len(key) && unsafe.SliceData(next) == unsafe.SliceData(key)
}

func (a *ahead) take() *store.Key {
	a.left--
	return &a.keys[len(a.keys)-a.left-1]
}

// Ahead brings records near.
func (n *near) Ahead(table uint32, keys [][]byte) {
	db, ok := n.req.Scope.table(table)
	if !ok {
		return
	}
	a := &n.ahead
	for len(a.keys) < len(keys) {
		a.keys = append(a.keys, store.Key{})
	}
	a.table, a.keys, a.left = table, a.keys[:len(keys)], len(keys)
	for i, key := range keys {
		n.sess.Name(&a.keys[i], db, key)
	}
	n.sess.Prefetch(a.keys)
}
