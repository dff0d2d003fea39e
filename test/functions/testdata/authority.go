// Tries what a process may, and a function may not; authority_test.go says what must come out.
package main

import (
	"fmt"
	"net"
	"os"
	"time"

	"example.com/probe/ostro"
)

//go:wasmexport ostro_fn_try
func try() int32 {
	return ostro.Run(func(c *ostro.Call) error {
		for _, a := range []struct {
			what string
			try  func() (any, error)
		}{
			{"read a file", func() (any, error) { return os.ReadFile("/etc/passwd") }},
			{"write a file", func() (any, error) { return nil, os.WriteFile("/tmp/ostro-escaped", nil, 0o600) }},
			{"list a directory", func() (any, error) { return os.ReadDir("/") }},
			{"make a directory", func() (any, error) { return nil, os.Mkdir("/tmp/ostro-escaped-dir", 0o700) }},
			{"remove a file", func() (any, error) { return nil, os.Remove("/tmp/ostro-escaped") }},
			{"read what is typed", func() (any, error) { return os.Stdin.Read(make([]byte, 1)) }},
			{"change the directory", func() (any, error) { return nil, os.Chdir("/tmp") }},
			{"start a process", func() (any, error) { return os.StartProcess("/bin/true", nil, &os.ProcAttr{}) }},
			{"resolve a name", func() (any, error) { return net.LookupHost("localhost") }},
			{"listen", func() (any, error) { return net.FileListener(os.NewFile(3, "socket")) }},
		} {
			if got, err := a.try(); err == nil {
				c.Resp(fmt.Appendf(nil, "%s: %v\n", a.what, got))
			}
		}
		c.Resp(fmt.Appendf(nil, "args %d, environment %d, year %d\n", max(len(os.Args)-1, 0), len(os.Environ()), time.Now().UTC().Year()))
		return nil
	})
}

func main() {}
