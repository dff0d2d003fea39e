package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/ostrodb/ostro/bench/workload"
)

// splinterRound is one round of one way to do something.
type splinterRound struct {
	OpsPerSecond float64          `json:"ops_per_second"`
	Latency      workload.Summary `json:"latency"` // of those who are looked at: all, or the short ones
	ServerCPU    float64          `json:"server_cpu_ns_per_op"`
	ClientBusy   float64          `json:"client_busy"` // share of one core
	Late         int              `json:"late"`        // due and not begun when the time was over
	Bad          int              `json:"bad"`         // bad deeds of others
	Answered     int              `json:"answered"`    // of them, by the end of the round
	Install      float64          `json:"install_ns"`  // how long a module of somebody else took to be installed, at the median
	InstallMost  float64          `json:"install_most_ns"`
	Stolen       time.Duration    `json:"stolen_ns"` // by the host, from all cores
}

// splinterCell is a way to do something in one case.
type splinterCell struct {
	Part   string          `json:"part"`
	Case   string          `json:"case"`
	X      float64         `json:"x"` // what the case is about, as a number
	Way    string          `json:"way"`
	Rounds []splinterRound `json:"rounds"`
}

func (c *splinterCell) of(figure func(splinterRound) float64) float64 {
	return medianOf(c.Rounds, figure)
}

func splinterRate(r splinterRound) float64 { return r.OpsPerSecond }
func splinterCPU(r splinterRound) float64  { return r.ServerCPU }
func splinterP50(r splinterRound) float64  { return float64(r.Latency.P50) }
func splinterP99(r splinterRound) float64  { return float64(r.Latency.P99) }
func splinterP999(r splinterRound) float64 { return float64(r.Latency.P999) }

// way is one of those that are compared.
type way struct {
	name  string
	round func(context.Context) (splinterRound, error)
}

// contest is ways that are compared with one another, in one case.
type contest struct {
	name string
	at   float64 // what the case is about, as a number
	ways []way
}

// compare measures the ways of one case in turns. What it returns is in their order.
func (x *splinter) compare(ctx context.Context, part, name string, at float64, ways []way) ([]splinterCell, error) {
	return x.hold(ctx, part, x.f.rounds, []contest{{name, at, ways}})
}

// hold measures contests in turns, and the ways of each right behind one another, every other time from the last to the first:
// what a way leaves behind is not always the same one's to bear. What it returns is in the order of contests and their ways.
func (x *splinter) hold(ctx context.Context, part string, rounds int, contests []contest) ([]splinterCell, error) {
	type one struct {
		in *contest
		w  way
	}
	var all []one
	for i := range contests {
		for _, w := range contests[i].ways {
			all = append(all, one{&contests[i], w})
		}
	}
	cells := make([]splinterCell, len(all))
	for round := range rounds {
		for turn := range all {
			i := turn
			if round%2 == 1 {
				i = len(all) - 1 - turn
			}
			c, w := all[i].in, all[i].w
			x.p.begin("%s: %s, %s, round %d of %d", part, c.name, w.name, round+1, rounds)
			r, err := w.round(ctx)
			if err != nil {
				x.keepWhole(cells, round)
				return nil, fmt.Errorf("%s, %s: %w", c.name, w.name, err)
			}
			cells[i].Part, cells[i].Case, cells[i].X, cells[i].Way = part, c.name, c.at, w.name
			cells[i].Rounds = append(cells[i].Rounds, r)
		}
	}
	x.out.Cells = append(x.out.Cells, cells...)
	return cells, nil
}

// keepWhole keeps the rounds that all ways have been through when a run ends early.
func (x *splinter) keepWhole(cells []splinterCell, rounds int) {
	for i := range cells {
		if rounds > 0 {
			cells[i].Rounds = cells[i].Rounds[:rounds]
			x.out.Cells = append(x.out.Cells, cells[i])
		}
	}
}

// usual is an order of a job as most parts have it, for the first tenants of a server.
func (x *splinter) usual(j job, tenants int) order {
	draw := skewed(tenants, x.f.skew, 7)
	return order{
		job: j, tenant: func() int { return int(draw()) }, batch: x.f.batch, window: x.f.window, duration: x.f.duration, bad: badTenants,
	}
}

// some does a few operations of some tenants, always the same.
func (x *splinter) some(ctx context.Context, s *splinterServer, j job) error {
	errands := 16
	o := order{job: j, batch: 16, window: 1, tenant: func() int {
		errands--
		if errands < 0 {
			return -1
		}
		return errands % x.f.most()
	}}
	_, err := s.fleet.run(ctx, o)
	return err
}

// by is a way through native sessions.
func (x *splinter) by(name string, s *splinterServer, o order) way {
	return way{name, func(ctx context.Context) (splinterRound, error) { return x.fleetRound(ctx, s, o) }}
}

// fleetRound carries out an order after a warm-up.
func (x *splinter) fleetRound(ctx context.Context, s *splinterServer, o order) (splinterRound, error) {
	warm := o
	warm.every, warm.duration = 0, min(warmUp, o.duration)
	if _, err := s.fleet.run(ctx, warm); err != nil {
		return splinterRound{}, err
	}
	before, err := exactCPUTime(s.Pid)
	if err != nil {
		return splinterRound{}, err
	}
	client, calm := ownCPU(), readMachineTime()
	total, err := s.fleet.run(ctx, o)
	if err != nil {
		return splinterRound{}, err
	}
	client = ownCPU() - client
	after, err := exactCPUTime(s.Pid)
	if err != nil {
		return splinterRound{}, err
	}
	stolen := readMachineTime().stolen - calm.stolen
	if err := s.calm(ctx); err != nil {
		return splinterRound{}, err
	}
	return splinterRound{
		OpsPerSecond: float64(total.Ops) / total.Elapsed.Seconds(), Latency: s.fleet.latency.Summary(),
		ServerCPU: float64(after-before) / float64(max(total.Ops, 1)), ClientBusy: client.Seconds() / total.Elapsed.Seconds(),
		Late: total.Late, Bad: total.Begun, Answered: total.Ended, Stolen: stolen,
	}, nil
}

// byRESP is a way through Redis' protocol: a connection for each batch that is under way.
func (x *splinter) byRESP(name string, t *target, doors []door, pipeline int, ring *requests, records uint64) way {
	return way{name, func(ctx context.Context) (splinterRound, error) {
		l, err := dialDoors(doors, x.f.window, pipeline, ring)
		if err != nil {
			return splinterRound{}, err
		}
		defer l.close()
		c := x.traces.NewChooser(workload.Zipfian, records, 0)
		next := func(ids []uint32) int {
			c.Fill(ids, 0)
			return len(ids)
		}
		if _, err := l.run(ctx, min(warmUp, x.f.duration), next); err != nil {
			return splinterRound{}, err
		}
		r, err := l.measured(ctx, t, x.f.duration, next)
		return splinterRound{OpsPerSecond: r.OpsPerSecond, Latency: r.Latency, ServerCPU: r.ServerCPU, ClientBusy: r.ClientBusy}, err
	}}
}
