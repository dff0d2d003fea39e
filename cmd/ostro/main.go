// Command ostro is the one binary of Ostro: the server, its clients and its
// tools. Each subcommand has a file of its own.
package main

import (
	"fmt"
	"os"
)

func main() {
	err := newRoot().Execute()
	if err == nil {
		return
	}
	for line := range sentences(err) {
		fmt.Fprintln(os.Stderr, "ostro: "+line)
	}
	os.Exit(exitCode(err))
}
