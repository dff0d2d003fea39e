// Package release stores words so that whoever sees the new value by an atomic
// load also sees everything written before it. That is all that a lock's end or
// a published position needs. The library's atomic stores promise more: on amd64
// they wait until the store is visible everywhere, some 20 cycles, and nothing
// behind them may begin.
//
// Use the library's stores where a later load of this goroutine must not be
// taken before the store, as when a guard enters an epoch.
package release
