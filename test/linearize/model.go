package linearize

import (
	"strconv"
	"strings"

	"github.com/anishathalye/porcupine"
)

// state is what an object is: nothing, or a string. A bank is the balances of
// its accounts with blanks between them; accounts that were never used hold 0.
type state struct {
	text  string
	there bool
}

var model = porcupine.Model{
	Init: func() any { return state{} },
	Step: func(s, in, _ any) (bool, any) { return in.(Op).step(s.(state)) },
	DescribeOperation: func(in, _ any) string {
		return in.(Op).String()
	},
	DescribeState: func(s any) string {
		if s := s.(state); s.there {
			return s.text
		}
		return "(nothing)"
	},
}

// step tells whether the operation, in this state, would have been answered as it
// was, and what comes of it. Without an answer anything may have happened.
func (o Op) step(s state) (bool, state) {
	switch o.Act {
	case Get:
		return o.saw(s), s
	case Set:
		return true, state{o.Put, true}
	case Swap:
		return o.saw(s), state{o.Put, true}
	case Delete:
		return !o.answered() || o.Found == s.there, state{}
	case CAS:
		return o.compare(s)
	case Append:
		next := state{s.text + o.Put, true}
		if o.grown != "" && !strings.HasPrefix(o.grown, next.text) {
			return false, s
		}
		return !o.answered() || o.Got == strconv.Itoa(len(next.text)), next
	case Add:
		return o.add(s)
	case Transfer:
		return o.transfer(s)
	case Balances:
		return !o.answered() || o.Got == balances(s, o.accounts()).text, s
	}
	return false, s
}

func (o Op) saw(s state) bool {
	return !o.answered() || o.Found == s.there && o.Got == s.text
}

// compare is a CAS. Those that failed are no part of a history: they say nothing, for
// a connection may also fail one for other reasons.
func (o Op) compare(s state) (bool, state) {
	if s.there != o.WantNone && s.text == o.Want {
		return true, state{o.Put, true}
	}
	return !o.answered(), s
}

func (o Op) add(s state) (bool, state) {
	old, err := strconv.ParseInt(s.text, 10, 64)
	if err != nil && s.there {
		return false, s
	}
	next := strconv.FormatInt(old+o.Amount, 10)
	return !o.answered() || o.Got == next, state{next, true}
}

func (o Op) transfer(s state) (bool, state) {
	all := strings.Fields(balances(s, max(o.From, o.To)+1).text)
	for _, change := range []struct {
		account int
		by      int64
	}{{o.From, -o.Amount}, {o.To, o.Amount}} {
		old, _ := strconv.ParseInt(all[change.account], 10, 64)
		all[change.account] = strconv.FormatInt(old+change.by, 10)
	}
	ok := !o.answered() || o.Got == all[o.From]+" "+all[o.To]
	return ok, state{strings.Join(all, " "), true}
}

// accounts is how many a bank's answer tells of.
func (o Op) accounts() int { return len(strings.Fields(o.Got)) }

// balances is a bank with n accounts at least.
func balances(s state, n int) state {
	all := strings.Fields(s.text)
	for len(all) < n {
		all = append(all, "0")
	}
	return state{strings.Join(all, " "), true}
}
