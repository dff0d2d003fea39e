// Package meta keeps in etcd what a cluster must agree on: its nodes and their
// leases, the map of ranges to owners with all views, logs and their replica
// versions, migrations, recoveries, settings.
//
//	PREFIX/settings            Settings
//	PREFIX/secret              what nodes prove themselves with to each other
//	PREFIX/map                 view.Map
//	PREFIX/nodes/ID            Node, for good
//	PREFIX/alive/ID            Presence, under the node's lease
//	PREFIX/logs/LOG            Log
//	PREFIX/counters/migration  the last migration's number
//	PREFIX/migrations/ID       Migration: all that go on, and the last that have ended
//	PREFIX/moves/ID            MigrationProgress, while it goes on
//	PREFIX/recoveries/LOG      Recovery
//	PREFIX/returns/ID          Recovery of what a living node returns, by migration
//	PREFIX/coordinator/LEASE   who is, or wants to be, coordinator
//	PREFIX/marks/ID            Marks of a node
//	PREFIX/balancer            Balancer, as an operator wants it
//	PREFIX/decision            Decision of the balancer, its last
//	PREFIX/wishes/ID           Wish of an operator, for the coordinator
//	PREFIX/progress/LOG/WHO    Progress of a recovery, by heir or coordinator
//	PREFIX/~BOOK/PAGE          pages of a Book or an Archive: tenants and their tables, functions
//
// Invariants:
//   - Every change is one transaction. It holds only if nothing that it was
//     computed from has changed, and only if its writer is still who it was: a
//     Member by the creation of its alive key, a Term by that of its coordinator key.
//     So of two coordinators at most one wins, and a deposed one never does.
//   - A map is written only if view.Validate accepts the step to it.
//   - A node's ranges are given to heirs only while its alive key is gone, after the node has
//     left or the key was gone for the lease's grace: so after the node's own Lease has ended
//     by the node's own clock.
//   - All that was acknowledged of a place is in its owner's log, in those that the owner is to
//     replay parts of, and in that of the source of a migration to it, from their floors on.
//   - A log that has records of an earlier time of a place has a floor above them before its
//     node is given the place again.
//
// etcd is on no data path: readers use a Cache, whose snapshot stays while etcd is away.
package meta
