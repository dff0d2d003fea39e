package index

import "github.com/ostrodb/ostro/engine/record"

// The layout of directory and buckets, for those who look up by assembly. They do
// what First does.
const (
	DirectoryBits = kindMask               // of a directory word: zero if it leads to a sub-table
	BucketBytes   = bucketBytes            // a sub-table's header is as long
	BucketMask    = bucketMask             // of a place: which primary bucket
	BucketTags    = tagOffset              // 16 bits for each word
	BucketMeta    = metaOffset             // negative if the bucket is locked
	TagBytes      = 1<<(2*bucketWords) - 1 // a bit for each byte of the tags
	WordLocked    = lockedBit
)

// Root is where the directory begins: always with one of at least one bit.
func (ix *Index) Root() *uint64 { return &ix.dir.root }

// AddressIn is the address in a bucket's word.
func AddressIn(word uint64) record.Address { return addressOf(word) }
