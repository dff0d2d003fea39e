// Package workload says what a benchmark does: which keys, which operations,
// which bytes. It knows no store and no server.
//
//	mix          shares of reads, updates, inserts, read-modify-writes, adds
//	distribution which record is asked for: uniform, zipf, hot, latest
//	encoding     how a record's number becomes a key, how a value is filled
//	latency      a histogram of nanoseconds
//
// Invariants:
//   - Drawing allocates nothing: what is costly to draw is drawn before the
//     clock starts and only walked afterwards.
//   - The same seed gives the same run.
//   - A Chooser, a Deck and a Latency belong to one worker.
package workload
