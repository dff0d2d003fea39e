package bench

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/bench/workload"
)

// driver runs one round of one case against one server.
type driver interface {
	keys() workload.Encoding
	round(ctx context.Context, t *target, c respCase) (respRound, error)
}

// respRound is one round of one case on one server.
type respRound struct {
	OpsPerSecond float64          `json:"ops_per_second"`
	Latency      workload.Summary `json:"latency"`
	ServerCPU    float64          `json:"server_cpu_ns_per_op"` // 0 where it is not known
	BackupCPU    float64          `json:"backup_cpu_ns_per_op"` // of all who keep copies together
	ClientBusy   float64          `json:"client_busy"`          // share of one core
}

// start starts and finds all servers; stop ends those it started.
func (f respFlags) start(ctx context.Context) (ts []*target, stop func(), err error) {
	if f.cluster {
		return f.replicated(ctx)
	}
	return f.targets(ctx)
}

func measureResp(ctx context.Context, p *progress, f respFlags) (*respOutcome, error) {
	cases, err := f.cases()
	if err != nil {
		return nil, err
	}
	targets, stop, err := f.start(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	// Only now: what is started inherits the cores of who starts it.
	if err := pinThisProcess(f.clientCPUs); err != nil {
		return nil, err
	}
	var d driver = &ownDriver{f: f}
	if f.driver == "redis-benchmark" {
		d = &redisBenchmark{f: f}
	}
	for _, t := range targets {
		p.begin("load %s records into %s", grouped(int64(f.records)), t.Name)
		if err := preload(ctx, p, t, d.keys(), uint64(f.records), f.value); err != nil {
			return nil, fmt.Errorf("load %s: %w", t.Name, err)
		}
	}
	out := &respOutcome{
		Targets: targets, Clients: f.clients, ValueBytes: f.value, KeyBytes: d.keys().Len(),
		Records: uint64(f.records), Driver: f.driver, RoundSeconds: f.duration.Seconds(), Cluster: f.cluster,
	}
	for _, c := range cases {
		results := make([]respResult, len(targets))
		for round := range f.rounds {
			for i, t := range targets {
				p.begin("%s on %s, round %d of %d", c, t.Name, round+1, f.rounds)
				r, err := d.round(ctx, t, c)
				if err != nil {
					return nil, fmt.Errorf("%s on %s: %w", c, t.Name, err)
				}
				results[i].respCase, results[i].Target = c, t.Name
				results[i].Rounds = append(results[i].Rounds, r)
			}
		}
		out.Results = append(out.Results, results...)
	}
	return out, nil
}

// preload writes the records that reads will find, and as many counters behind them.
func preload(ctx context.Context, p *progress, t *target, keys workload.Encoding, records uint64, value int) error {
	filler := make([]byte, value)
	workload.FillValue(filler, 0, 0)
	if err := fill(ctx, p, t, keys, 0, records, filler); err != nil {
		return err
	}
	return fill(ctx, nil, t, keys, records, 2*records, []byte("0"))
}

const (
	fillClients  = 16
	fillPipeline = 128
)

// fill sets the records [from, to) to value, stamped with their number.
func fill(ctx context.Context, p *progress, t *target, keys workload.Encoding, from, to uint64, value []byte) error {
	return fillDoor(ctx, p, door{addr: t.Addr}, keys, from, to, value)
}

// fillDoor is fill through a door.
func fillDoor(ctx context.Context, p *progress, d door, keys workload.Encoding, from, to uint64, value []byte) error {
	ring, err := newRequests(workload.Writes, keys, value, fillPipeline, 1, 0)
	if err != nil {
		return err
	}
	l, err := dialDoors([]door{d}, fillClients, fillPipeline, ring)
	if err != nil {
		return err
	}
	defer l.close()
	at := from
	_, err = l.run(ctx, 0, func(ids []uint32) int {
		n := min(uint64(len(ids)), to-at)
		for i := range n {
			ids[i] = uint32(at + i)
		}
		if at += n; p != nil {
			p.set(at-from, to-from)
		}
		return int(n)
	})
	return err
}

// ownDriver is the load of this package.
type ownDriver struct {
	f      respFlags
	traces workload.Traces
}

// warmUp goes before each round, unmeasured: connections, caches, branches.
const warmUp = 200 * time.Millisecond

func (d *ownDriver) keys() workload.Encoding {
	if d.f.cluster {
		return workload.Tagged30
	}
	return workload.Text30
}

func (d *ownDriver) round(ctx context.Context, t *target, c respCase) (respRound, error) {
	filler := make([]byte, d.f.value)
	workload.FillValue(filler, 0, 0)
	ring, err := newRequests(c.mix, d.keys(), filler, c.Pipeline, 1, t.wait)
	if err != nil {
		return respRound{}, err
	}
	l, err := dialLoad(t.Addr, d.f.clients, c.Pipeline, ring)
	if err != nil {
		return respRound{}, err
	}
	defer l.close()
	chooser := d.traces.NewChooser(c.dist, uint64(d.f.records), 0)
	base := uint32(0)
	if c.mix.Add > 0 {
		base = uint32(d.f.records) // counters lie behind the records
	}
	next := func(ids []uint32) int {
		chooser.Fill(ids, 0)
		for i := range ids {
			ids[i] += base
		}
		return len(ids)
	}
	if _, err := l.run(ctx, min(warmUp, d.f.duration), next); err != nil {
		return respRound{}, err
	}
	return l.measured(ctx, t, d.f.duration, next)
}

// measured is run with everything around it that a report needs.
func (l *load) measured(ctx context.Context, t *target, d time.Duration, next func([]uint32) int) (respRound, error) {
	server, err := t.cpu()
	if err != nil {
		return respRound{}, err
	}
	copies, err := t.backupCPU()
	if err != nil {
		return respRound{}, err
	}
	client := ownCPU()
	total, err := l.run(ctx, d, next)
	if err != nil {
		return respRound{}, err
	}
	client = ownCPU() - client
	after, err := t.cpu()
	if err != nil {
		return respRound{}, err
	}
	copiesAfter, err := t.backupCPU()
	if err != nil {
		return respRound{}, err
	}
	if total.Nulls > 0 {
		return respRound{}, fmt.Errorf("%d of %d operations found no record", total.Nulls, total.Ops)
	}
	return respRound{
		OpsPerSecond: float64(total.Ops) / total.Elapsed.Seconds(),
		Latency:      l.latency.Summary(),
		ServerCPU:    float64(after-server) / float64(total.Ops),
		BackupCPU:    float64(copiesAfter-copies) / float64(total.Ops),
		ClientBusy:   client.Seconds() / total.Elapsed.Seconds(),
	}, nil
}

// cpu is the server's CPU time so far, 0 where it cannot be known.
func (t *target) cpu() (time.Duration, error) {
	if t.Pid == 0 {
		return 0, nil
	}
	return cpuTime(t.Pid)
}

// ownCPU is the CPU time of this process.
func ownCPU() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u) // cannot fail with these arguments
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
