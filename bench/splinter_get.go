package bench

import (
	"context"
	"fmt"
	"slices"

	"github.com/ostrodb/ostro/bench/workload"
)

// measureGet is §4.4.2: what it costs to do by a function what needs none.
func (x *splinter) measureGet(ctx context.Context) error {
	s, err := x.shared(ctx, "bench")
	if err != nil {
		return err
	}
	if err := x.loadRecords(ctx, s); err != nil {
		return err
	}
	redis, err := x.beside(ctx)
	if err != nil {
		return err
	}
	if redis != nil {
		value := make([]byte, x.f.value)
		recordValue(value, 0)
		if err := fill(ctx, x.p, redis, workload.Text30, 0, uint64(x.f.records), value); err != nil {
			return err
		}
	}
	most := 0.0 // that functions serve with batches as they usually are
	for _, batch := range x.f.batches {
		ways := append(x.points(s, x.f.most(), batch), x.recorded(s, batch))
		if redis != nil {
			more, err := x.redisPoints(redis, batch)
			if err != nil {
				return err
			}
			ways = append(ways, more...)
		}
		cells, err := x.compare(ctx, "get", fmt.Sprintf("batches of %d", batch), float64(batch), ways)
		if err != nil {
			return err
		}
		if most == 0 || batch == x.f.batch {
			most = cells[1].of(splinterRate)
		}
	}
	return x.pacedPoints(ctx, s, most)
}

// points are gets and puts, plain and by functions.
func (x *splinter) points(s *splinterServer, tenants, batch int) []way {
	var ways []way
	for _, function := range []bool{false, true} {
		o := x.usual(newPointJob(&x.traces, uint64(x.f.share(tenants)), x.f.value, function), tenants)
		o.batch = batch
		ways = append(ways, x.by(wayOf(function), s, o))
	}
	return ways
}

// recordedName is a call that takes effect once however often it is sent, as clients have it who do not say that a
// function only reads: the server writes down each.
const recordedName = "function, once"

func (x *splinter) recorded(s *splinterServer, batch int) way {
	j := newPointJob(&x.traces, uint64(x.f.share(x.f.most())), x.f.value, true)
	j.once = true
	o := x.usual(j, x.f.most())
	o.batch = batch
	return x.by(recordedName, s, o)
}

func wayOf(function bool) string {
	if function {
		return "function"
	}
	return "native"
}

// redisPoints are the same of Redis.
func (x *splinter) redisPoints(t *target, batch int) ([]way, error) {
	value := make([]byte, x.f.value)
	recordValue(value, 0)
	plain, err := newRequests(workload.YCSBB, workload.Text30, value, batch, 1, 0)
	if err != nil {
		return nil, err
	}
	deck := workload.YCSBB.Deck(slotsFor(batch), 1)
	calls := newCommands(batch, func(i int) ringCommand {
		if deck[i] == workload.Read {
			return call("get", sampleKey())
		}
		return call("put", sampleKey(), string(value))
	})
	doors := []door{{addr: t.Addr}}
	return []way{
		x.byRESP("redis", t, doors, batch, plain, uint64(x.f.records)),
		x.byRESP("redis lua", t, doors, batch, calls, uint64(x.f.records)),
	}, nil
}

// pacedPoints are latencies at loads that both can serve.
func (x *splinter) pacedPoints(ctx context.Context, s *splinterServer, most float64) error {
	for _, percent := range given(x.f.loads) {
		var ways []way
		for _, function := range []bool{false, true} {
			o := x.usual(newPointJob(&x.traces, uint64(x.f.share(x.f.most())), x.f.value, function), x.f.most())
			ways = append(ways, x.by(wayOf(function), s, o.paced(most*float64(percent)/100)))
		}
		if _, err := x.compare(ctx, "get at a load", fmt.Sprintf("%d%% of what functions serve", percent), float64(percent), ways); err != nil {
			return err
		}
	}
	return nil
}

// pacedWindow is room for what is under way when a server is slow for a while.
const pacedWindow = 256

// paced is the order with operations that become due at a rate.
func (o order) paced(perSecond float64) order {
	o.perSecond, o.window = perSecond, max(o.window, pacedWindow)
	return o
}

// measureTenants is §4.4.3: gets and puts by the number of tenants.
func (x *splinter) measureTenants(ctx context.Context) error {
	s, err := x.shared(ctx, "bench")
	if err != nil {
		return err
	}
	if err := x.loadRecords(ctx, s); err != nil {
		return err
	}
	for _, n := range slices.Compact(x.f.crowds()) {
		if _, err := x.compare(ctx, "tenants", many(n, "tenant", "tenants"), float64(n), x.points(s, n, x.f.batch)); err != nil {
			return err
		}
	}
	return nil
}
