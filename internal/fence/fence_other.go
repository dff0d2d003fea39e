//go:build !amd64 && !arm64

package fence

import "sync/atomic"

var turn atomic.Uint32

// Loads lets no load before it pass one after it: an exchange is a full barrier
// wherever Go runs.
func Loads() { turn.Swap(0) }

// Stores lets no store before it be seen after one that follows.
func Stores() { turn.Swap(0) }

// Publish stores v at p so that whoever sees it by an atomic load also sees
// everything written before.
func Publish(p *uint64, v uint64) { atomic.StoreUint64(p, v) }
