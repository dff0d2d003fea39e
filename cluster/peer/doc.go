// Package peer is how nodes call each other: requests and answers over TCP,
// beside the fabric, which moves the data of the log.
//
//	connection := greeting frame*
//	greeting   := Magic nonce proof hello, as of package frame: both sides show that
//	              they know the secret before either says anything else
//	frame      := header method head bulk
//
// One connection carries the calls of a pair of nodes, pipelined: answers come in
// any order. Bulk (whole segments, streams of entries) has connections of its
// own, one call at a time, so that it delays no small call, and so that a reader
// who is slow holds up its sender by the socket alone.
//
// Invariants:
//   - A call is sent at most once. When its connection ends before its answer, the
//     outcome is unknown and the error is ErrLost; who called decides.
//   - Nothing that a stranger sends is kept, and no length is believed beyond the
//     limits before its sender is known.
//   - A frame that does not match its CRC ends its connection.
package peer

// Magic is what every connection of this protocol begins with, so that the owner
// of a listener can tell it from others.
const Magic = "OSTROPR1"
