package bench

import (
	"context"
	"fmt"
	"strconv"

	"github.com/ostrodb/ostro/bench/workload"
	"github.com/ostrodb/ostro/wire"
)

// manyJob calls functions of two kinds: some that make many gets, and others that make one.
type manyJob struct {
	draw, kinds ids
	percent     uint32 // that make many
	long, short []byte // arguments
	key         []byte
}

// newManyJob has so many of a hundred calls make so many gets, with a yield after every few.
func (x *splinter) newManyJob(percent, gets, every, records int) *manyJob {
	j := &manyJob{percent: uint32(percent), short: invocation("get"), key: make([]byte, workload.Text30.Len())}
	j.long = invocation("many", strconv.AppendInt(nil, int64(gets), 10), strconv.AppendInt(nil, int64(every), 10))
	j.draw.c = x.traces.NewChooser(workload.Zipfian, uint64(records), 0)
	j.kinds.c = x.traces.NewChooser(workload.Uniform, 100, 1)
	workload.Text30.Put(j.key, 0)
	return j
}

func (j *manyJob) first(b []byte, c *chore, tag uint32) []byte {
	workload.Text30.Patch(j.key, uint64(j.draw.next()))
	op := wire.Op{Code: wire.OpInvoke, Tag: tag, Key: j.key, Arg: j.short}
	if j.kinds.next() < j.percent {
		c.kind, op.Arg = 1, j.long
		c.aside = j.percent < 100 // Where there are others, theirs is the latency to look at.
	}
	return wire.AppendOp(b, &op, 0)
}

func (*manyJob) then(b []byte, _ *chore, r *wire.Result) ([]byte, bool, error) {
	return b, false, answered(r, "a call")
}

const (
	longPercent = 15
	longGets    = 128
	// halfLoad is what the server is offered of what it can serve where latencies are looked at.
	halfLoad = 0.5
)

// measureLong is Figure 4.11: short calls beside long ones that yield.
func (x *splinter) measureLong(ctx context.Context) error {
	s, err := x.shared(ctx, "bench")
	if err != nil {
		return err
	}
	if err := x.loadRecords(ctx, s); err != nil {
		return err
	}
	most, records := x.f.most(), x.f.share(x.f.most())
	job := func(every int) order { return x.usual(x.newManyJob(longPercent, longGets, every, records), most) }
	capacity, err := x.compare(ctx, "long calls, as many as are answered", "long ones never yield", 0, []way{x.by("calls", s, job(0))})
	if err != nil {
		return err
	}
	offered := halfLoad * capacity[0].of(splinterRate)
	ways := []way{x.by("no long ones", s, x.usual(x.newManyJob(0, longGets, 0, records), most).paced(offered))}
	for _, every := range x.f.yields {
		name := "they never yield"
		if every > 0 {
			name = fmt.Sprintf("they yield after %s", many(every, "get", "gets"))
		}
		ways = append(ways, x.by(name, s, job(every).paced(offered)))
	}
	_, err = x.compare(ctx, "long", fmt.Sprintf("%d%% make %d gets", longPercent, longGets), longGets, ways)
	return err
}

// skewGets makes calls long enough to be scheduled.
const skewGets = 512

// measureSkew is Figure 4.10: some tenants call more than others.
func (x *splinter) measureSkew(ctx context.Context) error {
	var servers []*splinterServer
	defer func() {
		for _, s := range servers {
			s.stop()
		}
	}()
	for _, w := range skewWays {
		s, err := x.startSplinter(ctx, x.f.most(), w.args...)
		if err != nil {
			return err
		}
		servers = append(servers, s)
		if err := s.install(x.p, "bench"); err != nil {
			return err
		}
		if err := x.loadRecords(ctx, s); err != nil {
			return err
		}
	}
	offered := 0.0
	for _, theta := range x.f.skews {
		job := func() order {
			o := x.usual(x.newManyJob(100, skewGets, 0, x.f.share(x.f.most())), x.f.most())
			draw := skewed(x.f.most(), theta, 7)
			o.tenant = func() int { return int(draw()) }
			o.batch = 1
			return o
		}
		if offered == 0 {
			cells, err := x.compare(ctx, "skew, as many as are answered", fmt.Sprintf("skew %g", theta), theta, x.onEach(servers, job))
			if err != nil {
				return err
			}
			offered = skewLoad * cells[0].of(splinterRate)
		}
		paced := func() order { return job().paced(offered) }
		if _, err := x.compare(ctx, "skew", fmt.Sprintf("skew %g", theta), theta, x.onEach(servers, paced)); err != nil {
			return err
		}
	}
	return nil
}

// skewLoad is what servers are offered of what the first serves: near the end of what they can.
const skewLoad = 0.75

// skewWays are where functions run.
var skewWays = []struct {
	name string
	args []string
}{
	{"at home, others steal", nil},
	{"at home only", []string{"--function-stealing=false"}},
	{"anywhere", []string{"--function-locality=false"}},
}

// onEach is an order for each of the servers.
func (x *splinter) onEach(servers []*splinterServer, make func() order) (ways []way) {
	for i, s := range servers {
		ways = append(ways, x.by(skewWays[i].name, s, make()))
	}
	return ways
}
