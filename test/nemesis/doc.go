// Package nemesis puts load on servers while they are killed, stopped, cut off
// and robbed of their disks, and then asks whether what clients were told makes sense.
//
// Most clients speak RESP over connections of their own, so that they know of every request
// whether it was answered, surely not executed, or neither.
//
//   - Histories of registers, counters, strings that only grow, and banks are linearizable; those of registers and strings
//     together with what native clients did to them, who try again by themselves.
//   - Ledgers of bulk writers: what was acknowledged is there, byte for byte.
//   - Hoards: large values, a slot of thousands of keys, and keys that live long are there; what was
//     deleted or has expired does not come back.
//   - Counters that native clients add to: every addition counts once.
//
// The short form runs in CI. The long one is `make torture-cluster`. Both print their seed.
package nemesis
