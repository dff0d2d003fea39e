// Package tenant knows who shares a node: names and passwords, the databases that are
// theirs, what they may use and what they have used.
//
//	Book ──── Catalog ───▶ Registry ───▶ Account ───▶ front doors
//	(a file, or etcd)        opens and drops databases    who is it? may it?
//
// Invariants:
//   - A database belongs to one tenant for ever: its number is never given to another.
//   - Whoever has an Account reaches the databases of its tenant and no others.
//   - A front door asks an Account without a lock, and without a line of memory that
//     cores share while nothing is scarce.
package tenant
