package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"github.com/ostrodb/ostro/bench/workload"
	"github.com/ostrodb/ostro/wire"
)

// A graph lies in records as the shipped module has them (examples/functions/tao), here written by plain puts, and checked against
// what its functions say. For clients that know nothing of its lists there is another record with the ids of a list, and
// one for each association: what they take is the paper's way, a get and a multi-get.
const (
	graphName  = "g"
	firstID    = 1_000_000_000 // ids have as many digits each
	edgeType   = 1
	objectData = 100
	edgeData   = 40
	edgeBytes  = 16 + edgeData
	// mostEdges is what fits into a list's first record.
	mostEdges = 2048 / edgeBytes
	rootHead  = 12
)

func objectKey(id uint64) []byte { return fmt.Appendf(nil, "{%s}:o:%d", graphName, id) }
func rootKey(id uint64) []byte   { return fmt.Appendf(nil, "{%s}:a:%d:%d", graphName, id, edgeType) }

func idsKey(id uint64) []byte { return fmt.Appendf(nil, "{%s}:l:%d:%d", graphName, id, edgeType) }

func edgeKey(b []byte, id1, id2 uint64) []byte {
	b = append(strconv.AppendUint(append(b, "{"+graphName+"}:e:"...), id1, 10), ':', '0'+edgeType, ':')
	return strconv.AppendUint(b, id2, 10)
}

// edge is the n-th association of an object, newest first.
type edge struct {
	id2  uint64
	time uint32
	data [edgeData]byte
}

func (f splinterFlags) edge(object, n int) (e edge) {
	e.id2, e.time = firstID+uint64((object+n+1)%f.objects), uint32(1<<20-n)
	for i := range e.data {
		e.data[i] = byte('a' + (object+n+i)%26)
	}
	return e
}

func (e *edge) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, e.id2)
	b = binary.LittleEndian.AppendUint32(b, e.time)
	b = binary.LittleEndian.AppendUint32(b, edgeData)
	return append(b, e.data[:]...)
}

// root is the record of an object's list.
func (f splinterFlags) root(object int) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(f.edges))
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
	for n := range f.edges {
		e := f.edge(object, n)
		b = e.append(b)
	}
	return b
}

// idsOf is the record with the ids of a list.
func (f splinterFlags) idsOf(object int) (b []byte) {
	for n := range f.edges {
		b = binary.LittleEndian.AppendUint64(b, f.edge(object, n).id2)
	}
	return b
}

func object(i int) []byte {
	return append([]byte{7, 0, 0, 0}, bytes.Repeat([]byte{byte('A' + i%26)}, objectData)...)
}

// graphRecord is the n-th record of an object: itself, its list in both forms, its associations.
func (f splinterFlags) graphRecord(i, n int) (key, value []byte) {
	id := firstID + uint64(i)
	switch n {
	case 0:
		return objectKey(id), object(i)
	case 1:
		return rootKey(id), f.root(i)
	case 2:
		return idsKey(id), f.idsOf(i)
	}
	e := f.edge(i, n-3)
	return edgeKey(nil, id, e.id2), append(binary.LittleEndian.AppendUint32(nil, e.time), e.data[:]...)
}

func (x *splinter) loadGraph(ctx context.Context, s *splinterServer) error {
	each := 3 + x.f.edges
	return s.load(ctx, x.p, "a graph for each tenant", func(int) int { return each * x.f.objects }, func(op *wire.Op, _, i int) {
		op.Key, op.Arg = x.f.graphRecord(i/each, i%each)
	})
}

// taoWay says which operations of the mix are calls, and how clients do the others.
type taoWay struct {
	name            string
	objects, ranges bool // by functions
	knows           bool // clients know how a list lies in records
}

var taoWays = []taoWay{
	{name: "native"},
	{name: "function", objects: true, ranges: true},
	{name: "combined", ranges: true},
	{name: "native, by the list's own record", knows: true},
}

// taoJob is 60% objects and 40% ranges.
type taoJob struct {
	taoWay
	draw, kinds ids
	limit       int
	key, arg    []byte
	keys        []byte
	check       uint64
	done        int
}

const objectPercent = 60

func (x *splinter) newTAOJob(w taoWay) *taoJob {
	j := &taoJob{taoWay: w, limit: x.f.limit}
	j.draw.c = x.traces.NewChooser(workload.Zipfian, uint64(x.f.objects), 0)
	j.kinds.c = x.traces.NewChooser(workload.Uniform, 100, 1)
	return j
}

// What a chore of the mix is at.
const (
	taoObject = iota
	taoRange
	taoEdges
)

func (j *taoJob) first(b []byte, c *chore, tag uint32) []byte {
	c.id = j.draw.next()
	id := firstID + uint64(c.id)
	op := wire.Op{Code: wire.OpRead, Tag: tag}
	switch isRange := j.kinds.next() >= objectPercent; {
	case isRange && j.ranges:
		c.kind = taoRange
		j.invoke(&op, "assoc_range", id, edgeType, 0, uint64(j.limit))
	case isRange:
		c.kind = taoRange
		kind := ":l:"
		if j.knows {
			kind = ":a:"
		}
		j.keyOf(&op, kind, id)
		j.key = append(j.key, ':', '0'+edgeType)
		op.Key = j.key
	case j.objects:
		j.invoke(&op, "obj_get", id)
	default:
		j.keyOf(&op, ":o:", id)
	}
	return wire.AppendOp(b, &op, 0)
}

// keyOf makes the key of one of the graph's records.
func (j *taoJob) keyOf(op *wire.Op, kind string, id uint64) {
	j.key = append(append(j.key[:0], "{"+graphName+"}"...), kind...)
	j.key = strconv.AppendUint(j.key, id, 10)
	op.Key = j.key
}

// invoke makes a call with numbers as arguments.
func (j *taoJob) invoke(op *wire.Op, function string, numbers ...uint64) {
	var texts [4][20]byte
	var args [4][]byte
	for i, n := range numbers {
		args[i] = strconv.AppendUint(texts[i][:0], n, 10)
	}
	j.arg = appendInvocation(j.arg[:0], function, args[:len(numbers)]...)
	op.Code, op.Key, op.Arg = wire.OpInvoke, []byte(graphName), j.arg
}

var errGraph = errors.New("the graph has other records than were written")

func (j *taoJob) then(b []byte, c *chore, r *wire.Result) ([]byte, bool, error) {
	if err := answered(r, "an operation on a graph"); err != nil {
		return b, false, err
	}
	j.done++
	switch {
	case c.kind == taoObject:
		if len(r.Value) != 4+objectData {
			return b, false, errGraph
		}
		j.check += uint64(r.Value[4])
		return b, false, nil
	case c.kind == taoEdges:
		return b, false, j.addEdges(r.Value)
	case j.ranges:
		return b, false, j.addEntries(r.Value)
	case j.knows:
		if len(r.Value) < rootHead {
			return b, false, errGraph
		}
		entries := r.Value[rootHead:]
		return b, false, j.addEntries(entries[:min(len(entries), j.limit*edgeBytes)])
	}
	// The ids of the list: its associations come by a multi-get.
	j.done--
	c.kind = taoEdges
	j.keys = j.keys[:0]
	var key [64]byte
	for n := 0; n < j.limit && 8*n+8 <= len(r.Value); n++ {
		id2 := binary.LittleEndian.Uint64(r.Value[8*n:])
		j.check += id2
		j.keys = wire.AppendKey(j.keys, edgeKey(key[:0], firstID+uint64(c.id), id2))
	}
	return wire.AppendOp(b, &wire.Op{Code: wire.OpMultiGet, Tag: r.Tag, Arg: j.keys}, 0), true, nil
}

// addEntries takes associations as lists have them.
func (j *taoJob) addEntries(b []byte) error {
	for ; len(b) >= edgeBytes; b = b[edgeBytes:] {
		j.check += binary.LittleEndian.Uint64(b) + uint64(binary.LittleEndian.Uint32(b[8:])) + uint64(b[16])
	}
	if len(b) > 0 {
		return errGraph
	}
	return nil
}

// addEdges takes associations as they are in records of their own.
func (j *taoJob) addEdges(values []byte) error {
	for len(values) > 0 {
		v, rest, err := wire.NextValue(values)
		if err != nil {
			return err
		}
		if v.Status != wire.OK || len(v.Value) != 4+edgeData {
			return errGraph
		}
		j.check += uint64(binary.LittleEndian.Uint32(v.Value)) + uint64(v.Value[4])
		values = rest
	}
	return nil
}

// measureTAO is §4.4.6.
func (x *splinter) measureTAO(ctx context.Context) error {
	s, err := x.shared(ctx, "tao")
	if err != nil {
		return err
	}
	if err := x.loadGraph(ctx, s); err != nil {
		return err
	}
	redis, err := x.beside(ctx)
	if err != nil {
		return err
	}
	if err := x.sameGraphs(ctx, s); err != nil {
		return err
	}
	var ways []way
	for _, w := range taoWays {
		ways = append(ways, x.by(w.name, s, x.usual(x.newTAOJob(w), x.f.most())))
	}
	if redis != nil {
		w, err := x.redisTAO(ctx, redis)
		if err != nil {
			return err
		}
		ways = append(ways, w)
	}
	_, err = x.compare(ctx, "tao", fmt.Sprintf("%d%% objects, %d%% ranges", objectPercent, 100-objectPercent), 1, ways)
	return err
}

// sameGraphs has all ways answer the same questions.
func (x *splinter) sameGraphs(ctx context.Context, s *splinterServer) error {
	var jobs []*taoJob
	for _, w := range taoWays {
		j := x.newTAOJob(w)
		if err := x.some(ctx, s, j); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		jobs = append(jobs, j)
	}
	for _, j := range jobs {
		if j.check != jobs[0].check || j.done != jobs[0].done || j.check == 0 {
			return fmt.Errorf("%s and %s do not agree: %d answers with the sum %d, and %d with %d", jobs[0].name, j.name, jobs[0].done, jobs[0].check, j.done, j.check)
		}
	}
	return nil
}

// redisTAO is the mix with objects by GET and ranges by Lua, on as many objects as all tenants have.
func (x *splinter) redisTAO(ctx context.Context, t *target) (way, error) {
	key := func(kind string, i int) []byte { return fmt.Appendf(nil, "{%s}:%s:%012d", graphName, kind, i) }
	all := x.f.objects * x.f.most()
	x.p.begin("load a graph into Redis")
	if err := loadRedis(ctx, t.Addr, 2*all, func(i int) ([]byte, []byte) {
		if i < all {
			return key("o", i), object(i)
		}
		return key("a", i-all), x.f.root(i - all)
	}); err != nil {
		return way{}, err
	}
	deck := workload.Mix{Read: objectPercent, Update: 100 - objectPercent}.Deck(slotsFor(x.f.batch), 1)
	ring := newCommands(x.f.batch, func(i int) ringCommand {
		if deck[i] == workload.Read {
			return ringCommand{words: []string{"GET", string(key("o", 0))}, at: 1}
		}
		return call("assoc_range", string(key("a", 0)), "0", strconv.Itoa(x.f.limit))
	})
	return x.byRESP("redis, GET and lua", t, []door{{addr: t.Addr}}, x.f.batch, ring, uint64(all)), nil
}
