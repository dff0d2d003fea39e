// Package wire defines the bytes of the native protocol. It is pure: it knows
// no connection, no clock, no store. docs/protocol.md tells the story; this is
// the grammar, all numbers little-endian:
//
//	client  := magic hello (batch | refresh)*
//	server  := welcome map (results | stale | map)* goodbye?
//	frame   := u32 length, u8 type, body           length counts type and body
//
//	hello   := u16 version, u16 0, u64 client, u16 n, user[n], u16 n, secret[n]
//	welcome := u16 version, u16 0, u32 maxFrame, u32 maxOps, u32 leaseMillis, u16 n, node[n]
//	batch   := u64 view, u64 client, u64 first, u64 acked, u32 number, u32 count, op*count
//	op      := u8 code, u8 flags, u16 table, u32 tag, u32 keyBytes, u32 argBytes,
//	           [u32 sequence - first], [i64 expireAt], [u64 version], key, arg
//	results := u32 count, result*count
//	result  := u32 tag, u8 status, u8 flags, u16 0, u32 valueBytes, u64 version, [i64 expireAt], value
//	stale   := u32 number, u32 0, u64 view
//	refresh := nothing
//	map     := u64 revision, u16 nodes, (u16 n, id[n], u16 n, address[n], u64 view)*, u32 spans, (u64 last, u16 node)*
//	goodbye := u16 code, u16 n, text[n]
//
// Invariants:
//   - Every length is checked before it is used, and every frame is bounded; a
//     decoder never allocates for what was announced and has not arrived.
//   - What a decoder returns points into its input, except for a Map.
//   - Every operation of an accepted batch is answered once, by its tag, in any
//     order; a stale batch is answered by one stale frame, and none of it was executed.
package wire
