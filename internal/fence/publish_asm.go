//go:build (amd64 || arm64) && !race

package fence

// Publish stores v at p so that whoever sees it by an atomic load also sees
// everything written before.
//
//go:noescape
func Publish(p *uint64, v uint64)
