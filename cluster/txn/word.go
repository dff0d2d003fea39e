package txn

// A lock is a word on every replica:
//
//	63      held for writing
//	62      a writer waits: no new readers
//	32..61  generation: the epoch's number, cut to 30 bits
//	 0..31  the writer's owner, or how many readers hold it
//
// Whoever comes with another generation finds another word than he expects: nobody
// of an earlier epoch can take a lock, nor release one that was taken since.
const (
	writing    = 1 << 63
	waiting    = 1 << 62
	ownerMask  = 1<<32 - 1
	generation = 1<<30 - 1
)

// Owner tells who holds a write lock. Zero is nobody.
type Owner uint32

// freeWord is a lock that nobody holds in an epoch.
func freeWord(epoch uint64) uint64 { return epoch >> 32 & generation << 32 }

func writerWord(epoch uint64, o Owner) uint64 { return freeWord(epoch) | writing | uint64(o) }

// shut tells whether a reader has to wait.
func shut(word uint64) bool { return word&(writing|waiting) != 0 }

// readers is how many hold a lock that is not held for writing.
func readers(word uint64) uint64 { return word & ownerMask }

// sameGeneration tells whether a word is of an epoch.
func sameGeneration(word, epoch uint64) bool {
	return word&(generation<<32) == freeWord(epoch)
}
