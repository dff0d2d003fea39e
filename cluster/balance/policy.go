package balance

// Policy is how even a cluster shall be, and what may be done for it.
type Policy struct {
	// Trigger is how many times the average the fullest node must carry before
	// anything moves; 1.25 if zero.
	Trigger float64
	// Goal is what a plan brings it down to, if it can; 1.1 if zero.
	Goal float64
	// Samples is how many in a row must show it, of the same node; one in four may not; 5 if zero. Half of them, and
	// three at least, are enough if the node carries twice the average of operations in each.
	Samples int
	// Cool is how many samples do not count after something has moved; 5 if zero.
	Cool int
	// Moves is how many a plan has at most, and so how many are on their way at once; 4 if zero.
	Moves int
	// MinOps is how many operations a second the fullest node must carry for its load to be worth
	// a move: below, bytes are balanced instead; 2,000 if zero.
	MinOps float64
	// HourBytes is the budget: how many bytes may move within an hour; 64 GiB if zero.
	HourBytes float64
	// HourMoves is how many moves there may be within an hour; 60 if zero.
	HourMoves int
	// SmallBytes is what is not worth moving for the sake of space; 1 GiB on the
	// fullest node if zero.
	SmallBytes float64
	// SpaceTrigger is Trigger for bytes: 1.5 if zero.
	SpaceTrigger float64
}

// WithDefaults fills in what is zero.
func (p Policy) WithDefaults() Policy {
	for _, d := range []struct {
		p *float64
		v float64
	}{
		{&p.Trigger, 1.25},
		{&p.Goal, 1.1},
		{&p.MinOps, 2000},
		{&p.HourBytes, 64 << 30},
		{&p.SmallBytes, 1 << 30},
		{&p.SpaceTrigger, 1.5},
	} {
		if *d.p == 0 {
			*d.p = d.v
		}
	}
	for _, d := range []struct {
		p *int
		v int
	}{{&p.Samples, 5}, {&p.Cool, 5}, {&p.Moves, 4}, {&p.HourMoves, 60}} {
		if *d.p == 0 {
			*d.p = d.v
		}
	}
	return p
}

// misses is how many samples of a row may show another thing, if the mean of all does not.
func (p Policy) misses() int { return (p.Samples - 1) / 4 }

// Spent is what was moved within the last hour.
type Spent struct {
	Bytes float64
	Moves int
}

// Held is why a move that would help is not made, in one word.
type Held string

const (
	HeldSamples     Held = "samples"     // it was not seen often enough
	HeldMoving      Held = "moving"      // something is on its way, or recovered
	HeldCool        Held = "cool-down"   // something just was
	HeldBudget      Held = "budget"      // enough has moved within the hour
	HeldUndividable Held = "undividable" // the load is on one slot, or one key
	HeldTarget      Held = "no-target"   // no other node may take more
	HeldDryRun      Held = "dry-run"     // an operator wants to be asked
)

// Helds are all of them.
var Helds = []Held{HeldSamples, HeldMoving, HeldCool, HeldBudget, HeldUndividable, HeldTarget, HeldDryRun}
