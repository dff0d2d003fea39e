// Package fence orders plain loads and stores against those that follow, where
// the processor does not do so by itself. Go's atomics order what comes before a
// store and after a load; a reader that looks at a version, copies, and looks
// again needs the other two:
//
//	writer   lock the version   Stores   change the value   publish the version
//	reader   load the version   copy the value   Loads   load the version again
//
// Without them the reader's copy may be newer than its second look, or the
// writer's change be seen before its lock.
//
// Publish is the end of such a change. The library's atomic stores promise more
// than that: on amd64 they wait until the store is visible everywhere, some 20
// cycles, and nothing behind them may begin. Use those where a later load of this
// goroutine must not be taken before the store, as when a guard enters an epoch.
package fence
