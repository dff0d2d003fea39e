//go:build amd64 || arm64

package release

// Store64 stores v at p.
//
//go:noescape
func Store64(p *uint64, v uint64)
