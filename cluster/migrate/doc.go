// Package migrate moves ranges of keys from one living node to another while both serve.
//
//	target (drives)                                     source (answers)
//	wanted: waits its turn
//	sample    ─────────────────────────────────────────▶ notes what clients use
//	transfer  ─────────────────────────────────────────▶ one step in etcd: ranges, views, floor
//	                                                      cut: nobody executes on the ranges any more,
//	                                                      what was executed is in all copies
//	          ◀──────── results of operations, yielded ──
//	opens: serves what is there, writes at once
//	pull      ═════════════════════════════════════════▶ about 20 KB of entries each, no state
//	pull keys ─────────────────────────────────────────▶ what clients wait for, first
//	all is here: closes side segments, copies them
//	complete: one step in etcd                            drops the ranges
//
// Invariants:
//   - Of two nodes never both execute on a place: the target opens only after the source has
//     yielded, and asks again whenever it does not know whether it has.
//   - After it has yielded the source changes nothing of the ranges until it sees the end in etcd. So a
//     pull can be repeated, in whole or in part, by whoever drives next.
//   - Nothing but what etcd says is remembered by a driver that dies: another begins with transfer
//     again and pulls everything again.
//   - An operation that waits for a key is let go when the key was imported, when the source has said that there is
//     none, or when the ranges are not arriving any more; never before, for it would only come back.
package migrate
