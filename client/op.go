package client

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/ostrodb/ostro/wire"
)

// Op is an operation to be. It keeps no slice that it is given.
type Op struct{ op wire.Op }

// Get reads a record.
func Get(table int, key []byte) Op { return opOf(wire.OpRead, table, key, nil) }

// Put writes a record that never expires, unless ExpireAt says when.
func Put(table int, key, value []byte) Op { return opOf(wire.OpPut, table, key, value) }

// Add adds to a counter, an 8-byte little-endian integer; absent is zero. Result.Int is the sum.
func Add(table int, key []byte, delta int64) Op {
	return opOf(wire.OpAdd, table, key, binary.LittleEndian.AppendUint64(nil, uint64(delta)))
}

// Append appends to a value; absent is empty. Result.Int is the new length.
func Append(table int, key, tail []byte) Op { return opOf(wire.OpAppend, table, key, tail) }

// Swap sets a value if it is old now; ErrConflict if not.
func Swap(table int, key, old, value []byte) Op {
	return opOf(wire.OpSwap, table, key, wire.AppendSwap(nil, &wire.Swap{Old: old, New: value}))
}

// Insert sets a value if there is none; ErrConflict if there is.
func Insert(table int, key, value []byte) Op {
	return opOf(wire.OpSwap, table, key, wire.AppendSwap(nil, &wire.Swap{Absent: true, New: value}))
}

// Merge lets the server's merge function of that name make the new value of the old one and an
// operand: max, min, or, union, and what the server's program registered. Result.Value is the new
// value if it has at most 1 KiB.
func Merge(table int, key []byte, name string, operand []byte) Op {
	return opOf(wire.OpMerge, table, key, wire.AppendMerge(nil, name, operand))
}

// Delete removes a record; ErrNotFound if there is none.
func Delete(table int, key []byte) Op { return opOf(wire.OpDelete, table, key, nil) }

// Invoke runs a function that is installed on the servers, where key lives: the function's first and only key.
// Result.Value is its response. As every write it is executed once, however often it is sent; so its response is kept for a while, and
// one that writes responds at most 4 KiB. ReadOnly is cheaper for one that does not.
func Invoke(table int, key []byte, name string, args ...[]byte) Op {
	return opOf(wire.OpInvoke, table, key, wire.AppendInvoke(nil, name, nil, args))
}

// InvokeKeys is Invoke of a function that takes several keys, of which there is at least one. It runs where the first one lives, and
// reaches those of the others that live there, too.
func InvokeKeys(table int, keys [][]byte, name string, args ...[]byte) Op {
	return opOf(wire.OpInvoke, table, keys[0], wire.AppendInvoke(nil, name, keys[1:], args))
}

func opOf(code wire.Code, table int, key, arg []byte) Op {
	return Op{wire.Op{Code: code, Table: tableOf(table), Key: key, Arg: arg}}
}

// tableOf is a table's number, and one that no table has for what is out of range: check refuses it.
func tableOf(table int) uint32 {
	if table < 0 || table > wire.MaxTable {
		return wire.MaxTable + 1
	}
	return uint32(table)
}

func checkTable(table uint32) error {
	if table > wire.MaxTable {
		return fmt.Errorf("%w: tables are 0 to %d", ErrNoTable, wire.MaxTable)
	}
	return nil
}

// ReadOnly makes an Invoke one that may not write: it may be executed more than once, and nothing is kept of it.
func (o Op) ReadOnly() Op {
	o.op.Flags |= wire.FlagReadOnly
	return o
}

// IfVersion makes a write depend on the record's version, as a Result told it; 0: there is no
// record. ErrConflict if it is another.
func (o Op) IfVersion(version uint64) Op {
	o.op.Flags |= wire.FlagIfVersion
	o.op.Version = version
	return o
}

// ExpireAt lets the record expire. Writes other than Put keep the record's time without it.
func (o Op) ExpireAt(t time.Time) Op {
	o.op.Flags |= wire.FlagExpire
	o.op.ExpireAt = t.UnixMilli()
	return o
}

// Result is the outcome of an operation.
type Result struct {
	Value   []byte
	Version uint64 // of the record now; 0 after a delete and after unrecorded writes
	Expires int64  // Unix milliseconds; 0: never
}

// Int is the value as a counter.
func (r Result) Int() int64 {
	if len(r.Value) != 8 {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(r.Value))
}
