// Package crash kills servers under load and looks at what is left.
//
// A life is one data directory. Its server is loaded from several connections,
// killed at a random moment, started again on the same directory, and
// everything is read back; then the load goes on where it was, for some
// generations, because recovery must also cope with what recovery left behind.
//
//	start ── verify ── load ── kill ──(start ── kill)*──┐
//	           ^─────────────────── start ──────────────┘
//
// Every client knows what it sent and what was acknowledged:
//
//	sent          o o o o o o o o o o o
//	acknowledged              ^
//	kept          <---------- at least        under everysec and always
//	found         some prefix of what was sent, no shorter than kept, nothing else
//
// Under checkpoint and none, "kept" is what was acknowledged before the last
// finished SAVE was sent. The clients:
//
//	writer     has two databases of its own; whatever the server holds there
//	           must be the writer's state after some prefix. So no write may be
//	           lost, come back, appear by half or out of order
//	transfer   several move money between the same accounts in transactions;
//	           each account must hold the sum of every client's prefix
//	flush      some set keys in a database that another one empties
//
// How to run it:
//
//	go test ./test/crash                       a few kills, as in CI
//	go test ./test/crash -v -kills 300         or OSTRO_TORTURE_KILLS
//	go test ./test/crash -v -minutes 30        or OSTRO_TORTURE_MINUTES
//	go test ./test/crash -v -seed 42           or OSTRO_TORTURE_SEED: the same lives and
//	                                           the same clients; moments still differ
//
// When something is found, the report names a copy of the data directory as the
// last kill left it.
package crash
