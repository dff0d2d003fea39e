// Package record defines the bytes of an entry and of a segment, and where a
// key lives. It is pure: it knows no file, no network, no clock.
//
//	segment := segmentHeader (entry* seal)* zero*
//	entry   := header [expiry] [client] key value pad
//
// Invariants:
//   - Entries are 8-aligned and never cross a segment's end.
//   - A zero type byte ends the segment; hence no entry may encode to one.
//   - A seal ends in a non-zero byte and covers every header before it, seeded
//     with the segment's id, so bytes of an earlier life never verify.
//   - What ends in a seal has arrived whole; anything after the last seal is
//     ignored.
//   - A seal numbers its batch in the order of all heads of the log. Of batches
//     behind a number that is missing none counts; see Prefix. Those of side segments
//     have no number, and count by themselves.
//   - An entry at rest has no lock bit in its version.
//
// All integers are little-endian, and so must the machine be: entries are read
// where they lie, never decoded into something else.
//
// docs/format.md draws the bytes.
package record
