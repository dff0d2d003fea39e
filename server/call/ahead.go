package call

import (
	"slices"
	"unsafe"

	"github.com/ostrodb/ostro/engine/store"
)

// ahead is keys of which a guest has said that it will read them next, in this order: their records are on the way to
// the processor. They have their names and sights already, where the next reads put theirs. Their bytes are the
// guest's, who does not run meanwhile.
type ahead struct {
	table   uint32
	at, end int // near.keys[at:end]; the first counts only if it is the next one that is kept
}

// expected tells that a key is the next one, whose place in keys is k.
func (a *ahead) expected(table uint32, key []byte, k *store.Key, kept int) bool {
	if a.at != kept || a.at >= a.end || table != a.table {
		return false
	}
	return len(k.Bytes) == len(key) && unsafe.SliceData(k.Bytes) == unsafe.SliceData(key)
}

// Ahead brings records near.
func (n *near) Ahead(table uint32, keys [][]byte) {
	db, ok := n.req.Scope.table(table)
	if !ok {
		return
	}
	at := len(n.keys)
	end := at + len(keys)
	n.ahead = ahead{table, at, end}
	n.keys = slices.Grow(n.keys, len(keys))
	if lacks := end - len(n.sights); lacks > 0 {
		n.sights = append(n.sights, make([]store.Sight, lacks)...)
	}
	named := n.keys[at:end]
	for i, key := range keys {
		n.sess.Name(&named[i], db, key)
	}
	n.sess.Expect(named, n.sights[at:end])
}
