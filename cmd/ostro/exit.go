package main

import (
	"errors"
	"io/fs"
	"iter"
	"net"
	"strings"
	"syscall"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/server"
)

// What scripts can rely on; docs/operations.md and `ostro --help` say the same.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2 // wrong flags, arguments or configuration
	exitDamaged = 3 // data that must be whole is not
)

// silentError has been told to the user already; only its exit code counts.
type silentError struct{ code int }

func (e silentError) Error() string { return "" }

func exitCode(err error) int {
	var silent silentError
	var usage usageError
	var config *server.ConfigError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &silent):
		return silent.code
	case errors.As(err, &usage), errors.As(err, &config):
		return exitUsage
	case errors.Is(err, record.ErrCorrupt):
		return exitDamaged
	default:
		return exitFailure
	}
}

// sentences yields what to tell the user: one line per thing that is wrong,
// each with what to do about it.
func sentences(err error) iter.Seq[string] {
	var silent silentError
	if errors.As(err, &silent) {
		return func(func(string) bool) {}
	}
	text := err.Error()
	if advice := advise(err); advice != "" && !strings.Contains(text, advice) {
		text += "; " + advice
	}
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			if !yield(strings.TrimRight(line, "\n")) {
				return
			}
		}
	}
}

// advise knows what to do about errors that come from the system. Packages
// that explain their own errors need no advice.
func advise(err error) string {
	var op *net.OpError
	isNet := errors.As(err, &op)
	switch {
	case errors.Is(err, device.ErrLocked), errors.Is(err, device.ErrFull):
		return "" // The device says it all.
	case errors.Is(err, syscall.EADDRINUSE):
		return "another program has that port: stop it or choose another one with --port or --admin-addr"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "this machine does not have that address: choose one that it has with --bind"
	case isNet && op.Op == "listen" && errors.Is(err, fs.ErrPermission):
		return "ports below 1024 need privileges: choose a higher one with --port"
	case isNet && op.Op == "dial" && errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there: start a server with `ostro server`, or name another one with -h and -p"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "the disk is full: free some space, or choose another one"
	case errors.Is(err, syscall.EMFILE):
		return "raise the limit of open files with `ulimit -n`"
	case errors.Is(err, record.ErrCorrupt):
		return "`ostro check DIR` tells what is damaged and what can be done"
	}
	return ""
}
