package extension

import (
	"errors"
	"testing"
)

// how says in which surroundings a script runs.
type how uint16

const (
	forReading how = 1 << iota // the call may not write
	waits                      // the store would have to wait for some keys, and the call is a trial
	tight                      // limits are low
	poor                       // the tenant has no memory left
	partial                    // some keys are elsewhere
	unlucky                    // the store takes no commit
	expected                   // the first key's value is put into the area
	again                      // a second call finds memory as the first one left it
	sliceBits                  // two bits: how long slices are
	_
	endBits // two bits: how the fuel, or the call, comes to its end
	_
	partBits // four bits: of how much
)

func (h how) has(bit how) bool { return h&bit != 0 }

func (h how) slice() int64 { return [...]int64{50_000, 1000, 150, 1}[h/sliceBits&3] }

// part is so much of something, from a sixteenth to all of it.
func (h how) part(all int64) int64 { return all * int64(h/partBits+1) / 16 }

// What the run of a script in slices ends by, if not by itself.
const (
	byItself = iota
	byExactFuel
	byLittleFuel
	byOthers
)

func (h how) end() int { return int(h / endBits & 3) }

// enoughFuel is for any script.
const enoughFuel = 1 << 40

func (h how) limits() CallLimits {
	l := DefaultLimits().Call
	l.Fuel, l.Slice, l.HostCalls = enoughFuel, 1<<30, 1000
	l.ResponseBytes, l.LogBytes = 200_000, 4096 // A response may be more than is kept in one piece.
	l.WriteBytes, l.ViewBytes, l.ValueBytes = 300_000, 1<<20, 100_000
	if h.has(tight) {
		l.HostCalls, l.ResponseBytes, l.LogBytes = 12, 300, 100
		l.Writes, l.Reads, l.WriteBytes = 6, 5, 700
		l.Views, l.ViewBytes, l.ValueBytes = 3, 6000, 400
	}
	return l
}

func (h how) setting() setting {
	return setting{limits: h.limits(), readOnly: h.has(forReading), trial: h.has(waits), poor: h.has(poor), expects: h.has(expected)}
}

func (h how) store(t testing.TB) *model {
	return &model{t: t, later: h.has(waits), partial: h.has(partial), unlucky: h.has(unlucky)}
}

// purse is a tenant's allowance that can be closed, and knows what is owed.
type purse struct {
	closed bool
	held   int64
}

var errPurse = errors.New("nothing is left")

func (p *purse) Take(int64) error {
	if p.closed {
		return errPurse
	}
	return nil
}

func (p *purse) Give(int64) {}

func (p *purse) Hold(n int64) error {
	if p.closed {
		return errPurse
	}
	p.held += n
	return nil
}

func (p *purse) Release(n int64) { p.held -= n }

func (p *purse) Scarce() bool { return false }

// queue is others who wait, of whom one ends the call at some time.
type queue struct{ yields, last int }

var errQueue = errors.New("somebody ended it")

func (q *queue) Yield(Reason) error {
	if q.yields++; q.yields == q.last {
		return errQueue
	}
	return nil
}

func (q *queue) Aloud(f func()) { f() }
