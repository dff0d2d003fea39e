// Package extension runs tenants' functions: WebAssembly modules that were
// rewritten so that what they do is counted (package meter), compiled once, and
// called on pooled instances next to the data.
//
// A guest runs on the goroutine that calls it, and comes back to Go at every
// call of the host and at the end of every slice of fuel, so neither the
// collector nor the scheduler waits for one longer than a slice takes. It has
// no authority but what an Invocation gives: a Store, a log, a clock, random
// bytes. Its writes are collected and handed to the Store at its end, all or none.
package extension

import "fmt"

// Kind says why a call did not succeed.
type Kind byte

// Kinds of failures.
const (
	Trapped      Kind = iota + 1 // an instruction that cannot be executed
	OutOfFuel                    // the budget is used up
	OutOfStack                   // too deep a recursion
	OverLimit                    // a limit of calls, responses, writes and so on
	Misused                      // a host call with arguments that make no sense
	Failed                       // the function said so, by fail or proc_exit
	Returned                     // it returned a number other than 0
	Killed                       // from outside
	NotCommitted                 // the store did not take its writes
	Broken                       // the host's own fault
)

var kindNames = [...]string{"", "trap", "out-of-fuel", "out-of-stack", "over-limit", "misuse", "failed", "returned", "killed", "not-committed", "broken"}

func (k Kind) String() string { return kindNames[k] }

// CallError is a call that did not succeed. Nothing that it wrote is applied.
type CallError struct {
	Kind     Kind
	Function string
	Code     int32  // of Failed and Returned
	Message  string // one sentence
	Trace    string // of the guest's functions, where it is known
	Err      error  // of NotCommitted
}

func (e *CallError) Error() string { return fmt.Sprintf("function %s %s", e.Function, e.Message) }

func (e *CallError) Unwrap() error { return e.Err }
