package background

import (
	"cmp"
	"runtime"
	"time"
)

// Pace is for bulk work at usual priority: it is asked between pieces of some ten microseconds, and after a stint of them
// rests for half as long as they took. Where others want the core a piece takes longer, and so does the rest.
//
// It is for work of milliseconds that many may have at once. A thread of low priority that is off its core keeps its
// processor of the Go scheduler, and perhaps a lock of it: those who serve would wait for the least of all.
//
// The zero value is ready. It belongs to one goroutine.
type Pace struct {
	// Idle is how many times as long as it worked it rests, if that is not half as long.
	Idle float64
	// Rested is how long it has rested so far.
	Rested time.Duration

	since time.Time
}

const (
	// stint is how long work goes on before it rests. To rest after less would cost more than it gives.
	stint = 50 * time.Microsecond
	// usualIdle is how many times as long as the work a rest is.
	usualIdle = 0.5
	// longest bounds a rest: work that waited for something else need not pay for it.
	longest = 2 * time.Millisecond
)

// Rest is called between two pieces.
func (p *Pace) Rest() {
	now := time.Now()
	if p.since.IsZero() {
		p.since = now
		return
	}
	worked := now.Sub(p.since)
	if worked < stint {
		return
	}
	Nap(p.after(worked))
	p.since = time.Now()
	p.Rested += p.since.Sub(now)
}

// after is how long a rest is after some work.
func (p *Pace) after(worked time.Duration) time.Duration {
	return min(time.Duration(cmp.Or(p.Idle, usualIdle)*float64(worked)), longest)
}

// Skip is Rest without a rest, for who is waited for.
func (p *Pace) Skip() { p.since = time.Now() }

// turns and humbleTurns have one of each f that runs in turn. Who is humble may take long, and nobody else waits for that.
var (
	turns       = make(chan struct{}, atOnce)
	humbleTurns = make(chan struct{}, atOnce)
	atOnce      = max(1, runtime.NumCPU()/4)
)

// InTurn runs paced work of milliseconds when it is its turn: many who have some go one after the other. f waits for nobody, as
// others wait for it.
func InTurn(f func(rest func())) {
	turns <- struct{}{}
	defer func() { <-turns }()
	var p Pace
	p.Rest()
	f(p.Rest)
}

// InTurnHumbly is InTurn for work that nobody waits for: it goes on while others leave a core idle, and instead of a rest it
// lets them go first now and then.
func InTurnHumbly(f func(rest func())) {
	humbleTurns <- struct{}{}
	defer func() { <-humbleTurns }()
	apart(nice(humility), func() {
		var c courtesy
		f(c.rest)
	})
}

// courtesy is that of humble work, which yields between some of its pieces. It has an end: on cores that are never idle others
// would go first for a hundred milliseconds each time, and in the end somebody waits for all work, for the memory that it frees if
// for nothing else. Without it work has its thirtieth.
type courtesy struct {
	pieces int
	given  time.Duration
}

const (
	// courteousPieces is after how many of them work yields: some hundred microseconds. After each it would be off a core that
	// is never idle for ten times as long.
	courteousPieces = 8
	// courteous is for how long it lets others go first.
	courteous = 10 * time.Millisecond
)

func (c *courtesy) rest() {
	if c.pieces++; c.pieces%courteousPieces != 0 || c.given >= courteous {
		return
	}
	from := time.Now()
	yield()
	c.given += time.Since(from)
}
