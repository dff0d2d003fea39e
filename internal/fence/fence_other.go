//go:build !amd64 && !arm64

package fence

import "sync/atomic"

var turn atomic.Uint32

// Loads lets no load before it pass one after it: an exchange is a full barrier
// wherever Go runs.
func Loads() { turn.Swap(0) }

// Stores lets no store before it be seen after one that follows.
func Stores() { turn.Swap(0) }
