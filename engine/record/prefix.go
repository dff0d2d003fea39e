package record

import "slices"

// Prefix returns the last batch of a log that counts after a loss of power: the
// highest one up to which none is missing. All up to safe are known to be
// there; of those above, seen holds what was found, in any order, and Prefix
// sorts it.
//
// Heads are synced one by one, so power may take a batch and leave one that was
// sealed after it. As a batch comes after all that it builds on, what Prefix
// keeps never lacks what it was made from.
func Prefix(safe BatchID, seen []BatchID) BatchID {
	slices.Sort(seen)
	for _, n := range seen {
		if n > safe+1 {
			break
		}
		safe = max(safe, n)
	}
	return safe
}
