// Package view says which node owns which part of the placement space. It
// holds values only: it knows no file, no network, no clock.
//
//	space := 2^64 places; the top 14 bits of a place are its Redis Cluster slot
//	Range := first..last, both included
//	Map   := every place to its owner, and every node's view number
//
// Invariants, all of them checked by Validate:
//   - Every place has exactly one owner.
//   - Whoever owns or owned a place has a view number, from 1 on.
//   - A node's view number never falls and is never forgotten.
//   - A node whose ranges change gets a higher number. So two nodes, or a node
//     and a client, that agree on a number agree on every place of that node,
//     and one comparison of integers answers for a whole batch.
//
// A Map never changes. Transitions return a new one, or say why there is none.
package view
