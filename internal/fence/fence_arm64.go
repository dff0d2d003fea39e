package fence

// Loads lets no load before it pass one after it.
func Loads()

// Stores lets no store before it be seen after one that follows.
func Stores()

// Publish stores v at p so that whoever sees it by an atomic load also sees
// everything written before.
//
//go:noescape
func Publish(p *uint64, v uint64)
