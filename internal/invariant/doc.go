// Package invariant holds checks of what must always be true. They are
// compiled in with the build tag "invariants" (`make test` runs the engine's
// tests with it) and cost nothing otherwise: Enabled is a constant, so the
// compiler drops the whole statement.
//
//	if invariant.Enabled {
//		invariant.Check(begin <= tail, "begin %d passed tail %d", begin, tail)
//	}
//
// A failed check is a bug of ours, never of a user or a disk: it panics.
package invariant
