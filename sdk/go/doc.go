// Package ostro is for functions that run inside Ostro, next to the data.
//
//	package main
//
//	//go:wasmexport ostro_fn_hello
//	func hello() int32 {
//		return ostro.Run(func(c *ostro.Call) error {
//			name, err := c.Arg(0)
//			if err != nil {
//				return err
//			}
//			c.Resp([]byte("hello, "))
//			c.Resp(name)
//			return nil
//		})
//	}
//
//	func main() {}
//
// It is built with
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o hello.wasm
//
// What holds:
//   - A function's writes are applied when Run has returned 0, all at one moment.
//     An error, a panic, or the end of the function's budget applies none.
//   - Values are copies of what was read, and yours to keep.
//   - A global variable may hold a cache and never the truth: calls of one function
//     run in several instances, and each may be thrown away.
//   - There are no files, sockets, environment or other goroutines' clocks:
//     what the standard library would ask an operating system for fails.
//
// Go brings its runtime along: a module has 1.5 MB and more, and an instance some
// megabytes. For many tenants, or calls of less than a few microseconds, take C,
// Rust or AssemblyScript.
package ostro
