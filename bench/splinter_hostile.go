package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ostrodb/ostro/bench/guest"
)

// Every round with something bad stands right beside one without, in turns with pairs of rounds of which neither has any: what
// those differ by is the machine's own doing.
const (
	noneName  = "none"
	againName = "none again"
	calmName  = "none at all"
	loopsName = "endless loops"
	// hostileRounds is how many times as many rounds there are as elsewhere, hostileLength how many times as long they last.
	hostileRounds = 3
	hostileLength = 2
)

// hostileName is how often something bad is done.
func hostileName(every int) string { return "1 in " + grouped(int64(every)) }

// quarrel is the server, tenants of it that only want to work, and what these do.
func (x *splinter) quarrel(ctx context.Context) (*splinterServer, order, error) {
	s, err := x.shared(ctx, "bench")
	if err != nil {
		return nil, order{}, err
	}
	if err := x.loadRecords(ctx, s); err != nil {
		return nil, order{}, err
	}
	for _, m := range s.members[len(s.members)-badTenants:] {
		if err := s.give(m, map[string][]byte{"hostile": guest.Hostile}); err != nil {
			return nil, order{}, err
		}
	}
	most := x.f.most()
	o := x.usual(x.newManyJob(0, 0, 0, x.f.share(most)), most)
	o.duration *= hostileLength
	return s, o, nil
}

// deed is to call a hostile function.
func deed(fn string) func(*fleet) error {
	call := invocation(fn)
	return func(f *fleet) error { return f.call(call) }
}

// measureHostile is Figure 4.12: functions that never end beside those of others.
func (x *splinter) measureHostile(ctx context.Context) error {
	s, o, err := x.quarrel(ctx)
	if err != nil {
		return err
	}
	contests := func(o order) []contest {
		all := []contest{{calmName, 0, []way{x.by(noneName, s, o), x.by(againName, s, o)}}}
		for _, every := range slices.Backward(slices.Sorted(slices.Values(x.f.hostile))) {
			bad := o
			bad.every, bad.deed = every, deed("loop")
			all = append(all, contest{hostileName(every), float64(every), []way{x.by(noneName, s, o), x.by(loopsName, s, bad)}})
		}
		return all
	}
	cells, err := x.hold(ctx, "hostile", hostileRounds*x.f.rounds, contests(o))
	if err != nil {
		return err
	}
	_, err = x.hold(ctx, "hostile at a load", hostileRounds*x.f.rounds, contests(o.paced(halfLoad*cells[0].of(splinterRate))))
	return err
}

// calm has the server end what bad tenants have begun, and waits for that, so that the next round has nothing of it.
func (s *splinterServer) calm(ctx context.Context) error {
	if s.fleet.owed > 0 {
		for _, m := range s.members[len(s.members)-badTenants:] {
			if err := s.endCalls(m); err != nil {
				return fmt.Errorf("end the calls of %s: %w", m.name, err)
			}
		}
	}
	return s.fleet.drain(ctx)
}

// endCalls ends what a tenant has under way.
func (s *splinterServer) endCalls(m fleetMember) error {
	c, err := dialAs(s.Addr, m)
	if err != nil {
		return err
	}
	defer c.close()
	if _, err = c.do("FUNCTION", "KILL"); err != nil && strings.HasPrefix(err.Error(), "NOTBUSY") {
		return nil
	}
	return err
}

// splinterKinds are what hostile tenants do, in the order in which it is measured.
var splinterKinds = []string{"loop", "recursion", "memory", "response", "hostcalls", "trap", "malformed", "compile-bomb"}

// measureKinds has hostile tenants do each of it, beside others who call as many functions as are answered, and then half of
// that.
func (x *splinter) measureKinds(ctx context.Context) error {
	s, o, err := x.quarrel(ctx)
	if err != nil {
		return err
	}
	contests := func(o order) (all []contest) {
		for i, kind := range splinterKinds {
			if slices.Contains(x.f.kinds, kind) {
				all = append(all, contest{kind, float64(i), x.besideNone(s, o, kind)})
			}
		}
		return all
	}
	cells, err := x.hold(ctx, "kinds", x.f.rounds, contests(o))
	if err != nil {
		return err
	}
	_, err = x.hold(ctx, "kinds at a load", x.f.rounds, contests(o.paced(halfLoad*cells[0].of(splinterRate))))
	return err
}

// besideNone is a kind beside rounds without it.
func (x *splinter) besideNone(s *splinterServer, o order, kind string) []way {
	bad := o
	bad.every = x.f.kindsEvery
	switch kind {
	case "malformed":
		broken := guest.Hostile[:len(guest.Hostile)/2]
		return x.withInstalls(s, o, kind, func(int) []byte { return broken })
	case "compile-bomb":
		return x.withInstalls(s, o, kind, guest.Bomb)
	}
	bad.deed = deed(kind)
	return []way{x.by(noneName, s, o), x.by(kind, s, bad)}
}
