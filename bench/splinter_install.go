package bench

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/ostrodb/ostro/bench/guest"
	"github.com/ostrodb/ostro/bench/workload"
	"github.com/ostrodb/ostro/wire"
)

// installed is what many functions take.
type installed struct {
	Functions int              `json:"functions"`
	Tenants   int              `json:"tenants"`
	Took      time.Duration    `json:"took_ns"`
	Empty     int64            `json:"resident_bytes_before"`
	Full      int64            `json:"resident_bytes_after"`
	Called    int64            `json:"resident_bytes_after_each_was_called"`
	Restart   time.Duration    `json:"restart_ns"` // until the server answers
	Restarted int64            `json:"resident_bytes_after_restart"`
	First     workload.Summary `json:"first_calls"` // after the restart
	Again     workload.Summary `json:"second_calls"`
	Calls     int              `json:"calls"`
	Machine   int64            `json:"machine_bytes"`
}

// measureInstall is how many functions fit, and how soon they answer after a restart.
func (x *splinter) measureInstall(ctx context.Context) error {
	dir, err := makeDir("")
	if err != nil {
		return fmt.Errorf("make a data directory: %w", err)
	}
	defer os.RemoveAll(dir)
	tenants := min(x.f.most(), x.f.install)
	out := installed{Functions: x.f.install, Tenants: tenants, Machine: thisMachine().MemoryBytes}
	s, err := x.fillShelves(ctx, dir, &out)
	if err != nil {
		return err
	}
	s.fleet.close()
	s.kill()
	began := time.Now()
	x.p.begin("install: start again")
	lone, err := x.f.startAloneIn(ctx, dir, tenantArgs(tenants)...)
	if err != nil {
		return err
	}
	defer lone.stop()
	out.Restart = time.Since(began)
	if out.Restarted, err = residentBytes(lone.Pid); err != nil {
		return err
	}
	again := &splinterServer{loneServer: lone, members: s.members}
	if again.fleet, err = dialFleet(again.native, again.members); err != nil {
		return err
	}
	defer again.fleet.close()
	if err := x.firstCalls(ctx, again, &out); err != nil {
		return err
	}
	x.out.Install = &out
	return nil
}

// fillShelves starts a server whose tenants install all functions, and calls each.
func (x *splinter) fillShelves(ctx context.Context, dir string, out *installed) (s *splinterServer, err error) {
	lone, err := x.f.startAloneIn(ctx, dir, tenantArgs(out.Tenants)...)
	if err != nil {
		return nil, err
	}
	s = &splinterServer{loneServer: lone}
	defer func() {
		if err != nil {
			s.stop()
		}
	}()
	x.p.begin("install: make %s", many(out.Tenants, "tenant", "tenants"))
	if err := s.makeTenants(x.p, out.Tenants); err != nil {
		return s, fmt.Errorf("make tenants: %w", err)
	}
	if out.Empty, err = residentBytes(s.Pid); err != nil {
		return s, err
	}
	x.p.begin("install %s functions", grouped(int64(out.Functions)))
	began := time.Now()
	if err := s.each(func(t int) error {
		modules := map[string][]byte{}
		for n := t; n < out.Functions; n += out.Tenants {
			modules[guest.Name(n)] = guest.Numbered(n)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		return s.give(s.members[t], modules)
	}); err != nil {
		return s, err
	}
	out.Took = time.Since(began)
	if out.Full, err = residentBytes(s.Pid); err != nil {
		return s, err
	}
	if s.fleet, err = dialFleet(s.native, s.members); err != nil {
		return s, err
	}
	x.p.begin("install: call each")
	if _, err := s.fleet.run(ctx, x.callsOf(out, out.Functions)); err != nil {
		return s, err
	}
	out.Called, err = residentBytes(s.Pid)
	return s, err
}

// firstCalls calls functions that nobody has called since the restart, one after the other, twice.
func (x *splinter) firstCalls(ctx context.Context, s *splinterServer, out *installed) error {
	out.Calls = min(x.f.first, out.Functions)
	for _, into := range []*workload.Summary{&out.First, &out.Again} {
		x.p.begin("install: call %s after the restart", many(out.Calls, "function", "functions"))
		if _, err := s.fleet.run(ctx, x.callsOf(out, out.Calls)); err != nil {
			return err
		}
		*into = s.fleet.latency.Summary()
	}
	return nil
}

// callsOf calls so many of all functions, each once, one at a time.
func (x *splinter) callsOf(out *installed, calls int) order {
	j := &numberedJob{step: out.Functions / calls, left: calls, tenants: out.Tenants, at: -out.Functions / calls}
	return order{job: j, tenant: j.tenant, batch: 1, window: 1}
}

// numberedJob calls the functions of numbered modules.
type numberedJob struct{ at, step, left, tenants int }

// tenant is whose the next function is.
func (j *numberedJob) tenant() int {
	if j.left == 0 {
		return -1
	}
	j.left--
	j.at += j.step
	return j.at % j.tenants
}

func (j *numberedJob) first(b []byte, _ *chore, tag uint32) []byte {
	return wire.AppendOp(b, &wire.Op{Code: wire.OpInvoke, Tag: tag, Key: []byte("nothing"), Arg: invocation(guest.Name(j.at))}, 0)
}

func (*numberedJob) then(b []byte, _ *chore, r *wire.Result) ([]byte, bool, error) {
	return b, false, answered(r, "a call")
}

// residentBytes is the memory of a process.
func residentBytes(pid int) (int64, error) {
	r, err := residentOf(pid)
	return r.Total, err
}
