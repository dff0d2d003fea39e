package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"github.com/ostrodb/ostro/bench/workload"
	"github.com/ostrodb/ostro/wire"
)

// listsOf is how many lists of each size a tenant has.
func (f splinterFlags) listsOf() int { return min(f.share(f.most()), 128) }

// listKey is as long as a record's key, and ends in digits like it.
func listKey(size, i int) []byte { return fmt.Appendf(nil, "list%04d%010d%012d", size, 0, i) }

// listed is the n-th record of a list, among records.
func listed(list, n, records int) int { return (list*31 + n*17) % records }

// listValue is the keys of the records that a list has.
func listValue(size, list, records int) []byte {
	keyBytes := workload.Text30.Len()
	value := make([]byte, size*keyBytes)
	for n := range size {
		workload.Text30.Put(value[n*keyBytes:], uint64(listed(list, n, records)))
	}
	return value
}

// loadLists gives each tenant lists of a size.
func (x *splinter) loadLists(ctx context.Context, s *splinterServer, size int) error {
	lists, records := x.f.listsOf(), x.f.share(x.f.most())
	return s.load(ctx, x.p, fmt.Sprintf("lists of %d", size), func(int) int { return lists }, func(op *wire.Op, _, i int) {
		op.Key, op.Arg = listKey(size, i), listValue(size, i, records)
	})
}

// sumJob adds the first fields of the records that a list has, and raises the sum to a power if asked.
type sumJob struct {
	draw  ids
	key   []byte
	call  []byte // argument of the function; nil: the client does it
	order int
	keys  []byte
	check uint64 // sum of all answers, modulo 2^64
	done  int
}

func (x *splinter) newSumJob(size int, function string, order int, args ...[]byte) *sumJob {
	j := &sumJob{key: listKey(size, 0), order: order}
	j.draw.c = x.traces.NewChooser(workload.Zipfian, uint64(x.f.listsOf()), 0)
	if function != "" {
		j.call = invocation(function, args...)
	}
	return j
}

func (j *sumJob) first(b []byte, c *chore, tag uint32) []byte {
	c.id = j.draw.next()
	workload.Text30.Patch(j.key, uint64(c.id))
	op := wire.Op{Code: wire.OpRead, Tag: tag, Key: j.key}
	if j.call != nil {
		op.Code, op.Arg = wire.OpInvoke, j.call
	}
	return wire.AppendOp(b, &op, 0)
}

func (j *sumJob) then(b []byte, c *chore, r *wire.Result) ([]byte, bool, error) {
	if err := answered(r, "an aggregate"); err != nil {
		return b, false, err
	}
	switch {
	case j.call != nil:
		n, err := strconv.ParseInt(string(r.Value), 10, 64)
		j.check += uint64(n)
		j.done++
		return b, false, err
	case c.kind == 0: // This is the list.
		c.kind = 1
		j.keys = j.keys[:0]
		for at, n := 0, workload.Text30.Len(); at+n <= len(r.Value); at += n {
			j.keys = wire.AppendKey(j.keys, r.Value[at:at+n])
		}
		return wire.AppendOp(b, &wire.Op{Code: wire.OpMultiGet, Tag: r.Tag, Arg: j.keys}, 0), true, nil
	}
	sum, err := sumOf(r.Value)
	j.check += power(sum, j.order)
	j.done++
	return b, false, err
}

// sumOf adds the first fields of the values of a multi-get.
func sumOf(values []byte) (sum uint64, err error) {
	for len(values) > 0 {
		v, rest, err := wire.NextValue(values)
		if err != nil {
			return 0, err
		}
		if v.Status != wire.OK || len(v.Value) < 8 {
			return 0, errors.New("a record of a list is missing")
		}
		sum += binary.LittleEndian.Uint64(v.Value)
		values = rest
	}
	return sum, nil
}

func power(n uint64, order int) uint64 {
	p := n
	for range order {
		p *= n
	}
	return p
}

// sameSums has jobs answer the same questions, and tells if they do not agree.
func (x *splinter) sameSums(ctx context.Context, s *splinterServer, a, b *sumJob) error {
	for _, j := range []*sumJob{a, b} {
		if err := x.some(ctx, s, j); err != nil {
			return err
		}
	}
	if a.check != b.check || a.done != b.done || a.check == 0 {
		return fmt.Errorf("clients and functions do not agree: %d answers with the sum %d, and %d with %d", a.done, a.check, b.done, b.check)
	}
	return nil
}

// measureAggregate is §4.4.5: two trips of a client, or one call.
func (x *splinter) measureAggregate(ctx context.Context) error {
	s, err := x.shared(ctx, "aggregate")
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
	for _, size := range x.f.sizes {
		if err := x.loadLists(ctx, s, size); err != nil {
			return err
		}
		client := func() *sumJob { return x.newSumJob(size, "", 0) }
		function := func() *sumJob { return x.newSumJob(size, "aggregate", 0) }
		if err := x.sameSums(ctx, s, client(), function()); err != nil {
			return err
		}
		ways := []way{x.by("client", s, x.usual(client(), x.f.most())), x.by("function", s, x.usual(function(), x.f.most()))}
		ring := newCommands(x.f.batch, func(int) ringCommand { return call("aggregate", string(listKey(size, 0))) })
		ways = append(ways, x.byRESP("fcall", s.target, x.memberDoors(s), x.f.batch, ring, uint64(x.f.listsOf())))
		if redis != nil {
			if err := x.loadRedisLists(ctx, redis, size); err != nil {
				return err
			}
			ways = append(ways, x.byRESP("redis lua", redis, []door{{addr: redis.Addr}}, x.f.batch, ring, uint64(x.f.listsOf())))
		}
		name := fmt.Sprintf("%d records", size)
		if _, err := x.compare(ctx, "aggregate", name, float64(size), ways); err != nil {
			return err
		}
		if _, err := x.compare(ctx, "aggregate alone", name, float64(size), []way{
			x.by("client", s, x.usual(client(), x.f.most()).single()), x.by("function", s, x.usual(function(), x.f.most()).single()),
		}); err != nil {
			return err
		}
	}
	return nil
}

// single is the order with one operation at a time: what it takes without any load.
func (o order) single() order {
	o.batch, o.window = 1, 1
	return o
}

// memberDoors are tenants' connections of Redis' protocol, as many as batches are under way.
func (x *splinter) memberDoors(s *splinterServer) (doors []door) {
	for i := range min(x.f.window, x.f.most()) {
		doors = append(doors, door{addr: s.Addr, as: s.members[i]})
	}
	return doors
}

// loadRedisLists writes the lists of a size, and the records that they have.
func (x *splinter) loadRedisLists(ctx context.Context, t *target, size int) error {
	records := x.f.share(x.f.most())
	key, value := make([]byte, workload.Text30.Len()), make([]byte, x.f.value)
	if err := loadRedis(ctx, t.Addr, records, func(i int) ([]byte, []byte) {
		workload.Text30.Put(key, uint64(i))
		recordValue(value, uint32(i))
		return key, value
	}); err != nil {
		return err
	}
	return loadRedis(ctx, t.Addr, x.f.listsOf(), func(i int) ([]byte, []byte) { return listKey(size, i), listValue(size, i, records) })
}

// measureCompute is Figure 4.15: the sum of two records to the power n.
func (x *splinter) measureCompute(ctx context.Context) error {
	s, err := x.shared(ctx, "bench")
	if err != nil {
		return err
	}
	if err := x.loadRecords(ctx, s); err != nil {
		return err
	}
	if err := x.loadLists(ctx, s, 2); err != nil {
		return err
	}
	for _, n := range x.f.orders {
		client := func() *sumJob { return x.newSumJob(2, "", n) }
		function := func() *sumJob { return x.newSumJob(2, "power", n, strconv.AppendInt(nil, int64(n), 10)) }
		if err := x.sameSums(ctx, s, client(), function()); err != nil {
			return err
		}
		if _, err := x.compare(ctx, "compute", fmt.Sprintf("%s multiplications", grouped(int64(n))), float64(n), []way{
			x.by("client", s, x.usual(client(), x.f.most())), x.by("function", s, x.usual(function(), x.f.most())),
		}); err != nil {
			return err
		}
	}
	return nil
}
