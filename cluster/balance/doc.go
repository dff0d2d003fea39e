// Package balance decides which ranges should move, so that no node carries much
// more than its share. It holds values only: it knows no network and no clock.
//
//	Sample, Sample, Sample ── too uneven each time? ── Plan: moves, and why
//
// Load is watched by Redis Cluster slot, and a move never cuts one. So keys that
// share a hash tag, which are what transactions use together, stay together, and every
// cluster client can follow. Of the ranges that would do, the one with the fewest
// slots goes, neighbours together: the fewer records move, and the fewer pieces the map has. Where native requests use several
// slots at once (Link), the one that tears the fewest of them apart goes before that.
//
// Invariants:
//   - A move is planned only if it makes the fuller node less full than it was, and
//     leaves the other one less full than that. So plans come to an end.
//   - What starts a plan (Trigger) lies above what ends it (Goal), and must be seen in
//     several samples of one load in a row, none of them taken while something moves or just has. So a balance
//     that was reached is left alone.
//   - What moves within an hour stays within the budget. A plan that is held back says by what.
package balance
