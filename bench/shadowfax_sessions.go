package bench

import (
	"context"
	"fmt"

	"github.com/ostrodb/ostro/bench/workload"
)

// sessionCell is one size of batches with one number of threads.
type sessionCell struct {
	Threads int         `json:"threads"`
	Batch   int         `json:"batch"`
	Rounds  []respRound `json:"rounds"`
}

// startLone starts one with the records of the experiment.
func (x *shadow) startLone(ctx context.Context, args ...string) (*loneServer, error) {
	s, err := x.f.startAlone(ctx, args...)
	if err != nil {
		return nil, err
	}
	value := make([]byte, x.f.value)
	workload.FillValue(value, 0, 0)
	x.p.begin("load %s records", x.f.records)
	if err := fill(ctx, x.p, s.target, workload.Text30, 0, uint64(x.f.records), value); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// load is YCSB-F in native sessions.
func (x *shadow) load(s *loneServer, threads, batch int) shadowLoad {
	return shadowLoad{
		door: door{addr: s.native, native: true}, pid: s.Pid, threads: threads, sessions: x.f.sessions, batch: batch,
		mix: workload.YCSBF, value: x.f.value, dist: workload.Zipfian, records: uint64(x.f.records),
	}
}

// measureSessions is throughput against batches and threads: §3.5.2 and 3.5.3.
func (x *shadow) measureSessions(ctx context.Context) error {
	s, err := x.startLone(ctx, "--durability", "none")
	if err != nil {
		return err
	}
	defer s.stop()
	for _, threads := range x.f.threads {
		for _, batch := range x.f.batches {
			x.out.Sessions = append(x.out.Sessions, sessionCell{Threads: threads, Batch: batch})
		}
	}
	for round := range x.f.rounds {
		for i := range x.out.Sessions {
			c := &x.out.Sessions[i]
			x.p.begin("sessions: %s, batches of %d, round %d of %d", many(c.Threads, "thread", "threads"), c.Batch, round+1, x.f.rounds)
			l := x.load(s, c.Threads, c.Batch)
			r, err := l.round(ctx, &x.traces, x.f.duration)
			if err != nil {
				return fmt.Errorf("batches of %d: %w", c.Batch, err)
			}
			c.Rounds = append(c.Rounds, r)
		}
	}
	return nil
}
