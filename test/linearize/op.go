package linearize

import (
	"fmt"
	"math"
)

// Act is what an operation does.
type Act int

// The first six are for objects that are one string, the last two for banks.
const (
	Get      Act = iota // Got is the value
	Set                 // Put is written
	Swap                // Put is written, Got is what was there
	CAS                 // Put is written, for Want was there
	Add                 // Amount is added to a number, Got is the sum
	Append              // Put is added at the end, Got is the new length
	Delete              // Found tells whether something was there
	Transfer            // Amount goes from account From to account To, Got is both balances
	Balances            // Got is the balances of all accounts
)

// Never is the return time of an operation without an answer.
const Never = math.MaxInt64

// Op is one operation on one object.
type Op struct {
	Client int
	Object string
	Call   int64 // nanoseconds since the history began
	Return int64 // Never if no answer came

	Act      Act
	Put      string
	Want     string // what a CAS saw
	WantNone bool   // a CAS saw that nothing was there
	Amount   int64
	From, To int // accounts

	// grown is what an object that only grows was at last, for an Append: it can have made nothing else on the way.
	grown string

	Got   string // the answer
	Found bool   // something was there
}

// answered tells whether Got and Found mean anything.
func (o Op) answered() bool { return o.Return != Never }

// reads tells whether it changes nothing.
func (o Op) reads() bool { return o.Act == Get || o.Act == Balances }

// String is the operation as a person would write it, with its answer.
func (o Op) String() string {
	answer := "no answer"
	if o.answered() {
		answer = o.answer()
	}
	return o.request() + " -> " + answer
}

func (o Op) request() string {
	switch o.Act {
	case Get:
		return "GET"
	case Set:
		return "SET " + o.Put
	case Swap:
		return "SWAP " + o.Put
	case CAS:
		if o.WantNone {
			return "CAS (nothing) to " + o.Put
		}
		return "CAS " + o.Want + " to " + o.Put
	case Add:
		return fmt.Sprintf("ADD %d", o.Amount)
	case Append:
		return "APPEND " + o.Put
	case Delete:
		return "DELETE"
	case Transfer:
		return fmt.Sprintf("TRANSFER %d from %d to %d", o.Amount, o.From, o.To)
	case Balances:
		return "BALANCES"
	}
	return "?"
}

func (o Op) answer() string {
	switch o.Act {
	case Set, CAS:
		return "done"
	case Delete:
		return fmt.Sprint(o.Found)
	case Get, Swap:
		if !o.Found {
			return "(nothing)"
		}
	}
	return o.Got
}
