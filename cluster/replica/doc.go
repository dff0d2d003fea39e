// Package replica keeps copies of logs on other nodes, and finds them again.
//
//	primary   streams a log's batches into buffers of backups by one-sided writes
//	backup    lends buffers, keeps what lies in them, on disk once it is closed
//	findings  what backups have of a dead node's log, and how heirs read it
//
// Invariants:
//   - A replica is a byte prefix of its segment, at any moment and after any death: buffers
//     are zeroed before a key to them is given away, and bytes land in order. The
//     scan of package record finds the last whole batch in it.
//   - A key opens one replica's buffer to one log, for as long as that replica
//     is open. It is revoked before the buffer is anything else.
//   - Nothing lands in a replica of a retired log, and none is opened any more.
//   - A segment that is not in the log's highest roster is not part of the log.
package replica
