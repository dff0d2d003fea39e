// Package index maps placements to log addresses. It is a hash table outside
// the Go heap, without pointers for the collector to follow, and it does not
// know keys: an entry says "a record whose place has these bits lies there",
// and the caller compares keys in the log.
//
//	directory   one word for each value of the places' top bits
//	sub-table   header line, 1024 primary buckets, overflow buckets
//	bucket      64 bytes: 6 words, 6 tags of 16 bits, meta of 32 bits
//	word        top 16 | address 45 | spare 1 | frozen 1 | locked 1
//
//	place       top 16 | tag 16 | unknown 22 | bucket 10
//	            `--directory--'
//
// The top 32 bits of an entry's place and its bucket number are known from the
// index alone. So splits, walks and dumps never read a record, which may lie
// on disk.
//
// Invariants:
//   - A word of zero is empty. Any other word keeps its position until it is
//     removed or until its sub-table is replaced as a whole.
//   - One entry per key: an insertion succeeds only if nothing was inserted into
//     the bucket since the caller looked through it.
//   - A frozen word never changes again. A compare-and-swap that was prepared
//     before the freeze fails after it, for the word differs.
//   - A sub-table that was replaced keeps its last bytes until the epoch is
//     safe, with all buckets locked. Whoever starts on such a bucket finds the
//     lock and goes through the directory again.
//   - An address is not used for another record while a guard is inside that
//     may have seen it. This is the log's promise; compare-and-swap rests on it.
//   - Places of one sub-table share its first `depth` bits. Depths only grow, and
//     an entry keeps its bucket number in every split.
//
// All calls but New, Close, Dump, Len, Bytes and Metrics are made inside a
// guard of the index's epoch table, and a Probe does not outlive the guard.
package index
