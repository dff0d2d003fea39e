//go:build !amd64 && !arm64

package release

import "sync/atomic"

// Store64 stores v at p.
func Store64(p *uint64, v uint64) { atomic.StoreUint64(p, v) }
