// Package resp is the codec of the Redis protocol, RESP2 and RESP3. It knows
// no socket: it works on bytes that others have read and will write.
//
//	Parser       cuts commands out of what a client sent, in place
//	Writer       appends replies
//	ReplyReader  decodes replies, for clients
//
// Invariants:
//   - Neither Parser nor Writer allocates once its buffers have grown.
//   - What the Parser returns does not depend on how the network cut the
//     input into pieces.
//   - Memory follows the bytes that arrived, never the lengths announced.
package resp
