package bench

import (
	"encoding/binary"
	"fmt"

	"github.com/ostrodb/ostro/bench/workload"
	"github.com/ostrodb/ostro/wire"
)

// invocation is the argument of an operation that calls a function.
func invocation(name string, args ...[]byte) []byte { return appendInvocation(nil, name, args...) }

func appendInvocation(b []byte, name string, args ...[]byte) []byte {
	return wire.AppendInvoke(b, name, nil, args)
}

// answered tells what is wrong with a result.
func answered(r *wire.Result, what string) error {
	if r.Status != wire.OK {
		return fmt.Errorf("%s: the server answered %s %s", what, r.Status, r.Value)
	}
	return nil
}

// ids draws records ahead, as many as a chooser likes to give at once.
type ids struct {
	c    *workload.Chooser
	some [256]uint32
	left int
}

func (d *ids) next() uint32 {
	if d.left == 0 {
		d.c.Fill(d.some[:], 0)
		d.left = len(d.some)
	}
	d.left--
	return d.some[d.left]
}

// recordValue is the value of a record: a number to be summed up, and filler.
func recordValue(dst []byte, id uint32) {
	for i := 8; i < len(dst); i++ {
		dst[i] = 'a' + byte(i%26)
	}
	binary.LittleEndian.PutUint64(dst, recordNumber(id))
}

// recordNumber is small enough to be exact in Lua, too, when some are added.
func recordNumber(id uint32) uint64 { return uint64(id) * 2654435761 & (1<<32 - 1) }

// pointJob reads and writes single records: YCSB-B, natively or by functions.
type pointJob struct {
	draw     ids
	writes   ids // of a hundred, which operations write
	function bool
	once     bool   // the server records each call, and so would not execute it again
	get, put []byte // arguments of operations
	key      []byte
	value    []byte
}

const writePercent = 5

func newPointJob(traces *workload.Traces, records uint64, value int, function bool) *pointJob {
	j := &pointJob{function: function, key: make([]byte, workload.Text30.Len()), value: make([]byte, value)}
	j.draw.c = traces.NewChooser(workload.Zipfian, records, 0)
	j.writes.c = traces.NewChooser(workload.Uniform, 100, 1)
	workload.Text30.Put(j.key, 0)
	recordValue(j.value, 0)
	j.put = j.value
	if function {
		j.get, j.put = invocation("get"), invocation("put", j.value)
	}
	return j
}

func (j *pointJob) first(b []byte, c *chore, tag uint32) []byte {
	c.id = j.draw.next()
	workload.Text30.Patch(j.key, uint64(c.id))
	op := wire.Op{Code: wire.OpRead, Tag: tag, Key: j.key, Arg: j.get}
	if j.writes.next() < writePercent {
		c.kind = 1
		// The value that is written is the record's own.
		binary.LittleEndian.PutUint64(j.put[len(j.put)-len(j.value):], recordNumber(c.id))
		op.Code, op.Arg = wire.OpPut, j.put
	}
	if j.function {
		op.Code = wire.OpInvoke
	}
	if j.once {
		op.Flags, op.Sequence, c.once = wire.FlagOnce, c.number, true
	}
	return wire.AppendOp(b, &op, 0)
}

func (j *pointJob) then(b []byte, c *chore, r *wire.Result) ([]byte, bool, error) {
	if err := answered(r, "a get or put"); err != nil {
		return b, false, err
	}
	if c.kind == 0 && (len(r.Value) != len(j.value) || binary.LittleEndian.Uint64(r.Value) != recordNumber(c.id)) {
		return b, false, fmt.Errorf("record %d of tenant %d has another value: %.40q", c.id, c.tenant, r.Value)
	}
	return b, false, nil
}

// loadJob writes what make makes of 0, 1, 2, ... for each tenant.
type loadJob struct {
	each   func(tenant int) int // how many
	make   func(op *wire.Op, tenant, i int)
	at, i  int // whose turn it is, and which is next
	tenant int // how many there are
}

// next is whose the next errand is.
func (j *loadJob) next() int {
	for j.at < j.tenant && j.i >= j.each(j.at) {
		j.at, j.i = j.at+1, 0
	}
	if j.at == j.tenant {
		return -1
	}
	return j.at
}

func (j *loadJob) first(b []byte, c *chore, tag uint32) []byte {
	op := wire.Op{Code: wire.OpPut, Tag: tag}
	j.make(&op, c.tenant, j.i%j.each(c.tenant)) // A batch that is not full begins anew.
	j.i++
	return wire.AppendOp(b, &op, 0)
}

func (*loadJob) then(b []byte, _ *chore, r *wire.Result) ([]byte, bool, error) {
	return b, false, answered(r, "a write of the load")
}
