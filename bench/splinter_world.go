package bench

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/ostrodb/ostro/bench/guest"
	"github.com/ostrodb/ostro/bench/workload"
	"github.com/ostrodb/ostro/examples/functions"
	"github.com/ostrodb/ostro/wire"
)

// splinterServer is a server with tenants that have functions and records.
type splinterServer struct {
	*loneServer
	members []fleetMember
	fleet   *fleet
	has     map[string]bool // which data is there
}

// Whoever misbehaves is none of those who are measured.
const (
	operatorPassword = "bench-operator"
	badTenants       = 8
)

// startSplinter starts a server with tenants, those that misbehave last, and their functions.
func (x *splinter) startSplinter(ctx context.Context, tenants int, args ...string) (*splinterServer, error) {
	lone, err := x.f.startAlone(ctx, append(tenantArgs(tenants), args...)...)
	if err != nil {
		return nil, err
	}
	s := &splinterServer{loneServer: lone, has: map[string]bool{}}
	x.p.begin("make %s", many(tenants+badTenants, "tenant", "tenants"))
	if err := s.makeTenants(x.p, tenants+badTenants); err != nil {
		s.stop()
		return nil, fmt.Errorf("make tenants: %w", err)
	}
	if s.fleet, err = dialFleet(s.native, s.members); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// tenantArgs are those of a server that tenants share.
func tenantArgs(tenants int) []string {
	return []string{
		"--durability", "none", "--requirepass", operatorPassword, "--maxclients", strconv.Itoa(2*(tenants+badTenants) + 1000),
	}
}

func (s *splinterServer) stop() {
	if s.fleet != nil {
		s.fleet.close()
	}
	s.loneServer.stop()
}

// makeTenants creates them as an operator does.
func (s *splinterServer) makeTenants(p *progress, n int) error {
	c, err := dialAs(s.Addr, fleetMember{"default", operatorPassword})
	if err != nil {
		return err
	}
	defer c.close()
	for i := range n {
		m := fleetMember{fmt.Sprintf("t%04d", i), fmt.Sprintf("secret-of-%04d", i)}
		c.send("TENANT", "CREATE", m.name, "password", m.password)
		s.members = append(s.members, m)
	}
	return c.collect(p, n)
}

// dialAs connects and logs in.
func dialAs(addr string, m fleetMember) (*control, error) {
	c, err := dialControl(addr)
	if err != nil {
		return nil, err
	}
	if _, err := c.do("AUTH", m.name, m.password); err != nil {
		c.close()
		return nil, fmt.Errorf("log in as %s: %w", m.name, err)
	}
	return c, nil
}

// collect takes the replies to so many commands that were sent.
func (c *control) collect(p *progress, n int) error {
	_ = c.conn.SetDeadline(time.Now().Add(controlTimeout)) // A broken connection fails below.
	if err := c.w.Flush(); err != nil {
		return err
	}
	for i := range n {
		if _, err := c.receive(); err != nil {
			return err
		}
		if p != nil {
			p.set(uint64(i+1), uint64(n))
		}
	}
	return nil
}

// splinterModules are those that tenants of the experiment have.
func splinterModules() (map[string][]byte, error) {
	all := map[string][]byte{"bench": guest.Module}
	for _, name := range []string{"aggregate", "tao"} {
		m, err := functions.Module(name)
		if err != nil {
			return nil, err
		}
		all[name] = m
	}
	return all, nil
}

// install gives modules to all tenants, once.
func (s *splinterServer) install(p *progress, names ...string) error {
	modules, err := splinterModules()
	if err != nil {
		return err
	}
	for _, name := range names {
		if s.has["module "+name] {
			continue
		}
		p.begin("install %s for %s", name, many(len(s.members), "tenant", "tenants"))
		if err := s.each(func(i int) error { return s.give(s.members[i], map[string][]byte{name: modules[name]}) }); err != nil {
			return err
		}
		s.has["module "+name] = true
	}
	return nil
}

// hands is for how many tenants something is done at a time.
const hands = 16

// each does something for all tenants.
func (s *splinterServer) each(do func(tenant int) error) error {
	var mu sync.Mutex
	var failed error
	var all sync.WaitGroup
	for hand := range hands {
		all.Go(func() {
			for i := hand; i < len(s.members); i += hands {
				if err := do(i); err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
					return
				}
			}
		})
	}
	all.Wait()
	return failed
}

// give installs modules as a tenant does.
func (s *splinterServer) give(m fleetMember, modules map[string][]byte) error {
	c, err := dialAs(s.Addr, m)
	if err != nil {
		return err
	}
	defer c.close()
	for name, code := range modules {
		c.send("FUNCTION", "LOAD", "REPLACE", "#!wasm name="+name+"\n"+string(code))
	}
	if err := c.collect(nil, len(modules)); err != nil {
		return fmt.Errorf("install functions of %s: %w", m.name, err)
	}
	return nil
}

// load has each tenant write what make says, once.
func (s *splinterServer) load(ctx context.Context, p *progress, what string, each func(tenant int) int, fill func(op *wire.Op, tenant, i int)) error {
	if s.has[what] {
		return nil
	}
	p.begin("load %s", what)
	j := &loadJob{each: each, make: fill, tenant: len(s.members) - badTenants}
	if _, err := s.fleet.run(ctx, order{job: j, tenant: j.next, batch: fillPipeline, window: fillClients}); err != nil {
		return fmt.Errorf("load %s: %w", what, err)
	}
	s.has[what] = true
	return nil
}

// loadRecords gives each tenant as many records as it needs in the largest share that it ever has.
func (x *splinter) loadRecords(ctx context.Context, s *splinterServer) error {
	key, value := make([]byte, workload.Text30.Len()), make([]byte, x.f.value)
	workload.Text30.Put(key, 0)
	return s.load(ctx, x.p, "records", x.f.recordsOf, func(op *wire.Op, _, i int) {
		workload.Text30.Patch(key, uint64(i))
		recordValue(value, uint32(i))
		op.Key, op.Arg = key, value
	})
}

// recordsOf is how many records a tenant has: its share when as few tenants as possible are
// measured, it among them.
func (f splinterFlags) recordsOf(tenant int) int {
	for _, n := range f.crowds() {
		if n > tenant {
			return f.share(n)
		}
	}
	return 0
}

// share is how many records each of so many tenants has: all of them have the same number together.
func (f splinterFlags) share(tenants int) int { return max(1, int(f.records)/tenants) }
