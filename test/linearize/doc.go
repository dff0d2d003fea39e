// Package linearize records what clients did to a store and what they were
// told, and finds out whether one order of all operations explains it: each takes effect
// at one moment between its call and its answer.
//
// Invariants:
//   - An operation stands in the history before its request is sent. One whose answer
//     never came may take effect at any later moment, or never.
//   - Objects are independent: a history is explained if each object's is.
//   - Nothing is taken for explained that was not: an object whose search takes too long is
//     a failure of its own, which says so.
package linearize
