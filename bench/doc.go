// Package bench measures Ostro beside others: a file per experiment, each
// opening with its claim and with what would refute it.
//
//	engine.go     the library alone, beside FASTER's published figures
//	resp.go       several RESP servers, interleaved in one run
//	memory.go     bytes of memory a record takes, in several servers
//	recovery.go   kill -9, restart, until the server is ready
//	larger.go     data four times the memory budget
//	hyperloop.go  group operations on busy replicas, by NICs and by programs
//
// Invariants:
//   - Figures that are compared were taken in one run on one machine; the run
//     says which machine, which commit, and the command that repeats it.
//   - A measured figure is never asserted on: experiments print, people judge.
//   - Whatever process an experiment starts ends with it, even when it is killed.
//   - What was read back wrong, refused or lost fails the experiment.
package bench
