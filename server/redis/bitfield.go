package redis

import (
	"bytes"

	"github.com/ostrodb/ostro/engine/store"
)

// bitfieldOp is one operation of BITFIELD.
type bitfieldOp struct {
	kind     bitfieldKind
	field    bitInt
	operand  int64 // the value to set or to add
	overflow overflowMode
}

type bitfieldKind uint8

const (
	bitfieldGet bitfieldKind = iota
	bitfieldSet
	bitfieldIncrby
)

func bitfield(c *call) verdict {
	ops, ok := c.bitfieldOps()
	if !ok {
		return done
	}
	reach := bitfieldReach(ops)
	if reach == 0 {
		return c.readBitfield(ops)
	}
	k := c.key(1)
	_, v := c.modifyString(&k, func(old store.View, found bool) (store.Write, action) {
		value := c.grown(old.Value, max(len(old.Value), int(reach)))
		changed := len(value) != len(old.Value)
		c.out.Array(len(ops))
		for i := range ops {
			ops[i].apply(c, value)
		}
		if !changed && bytes.Equal(value, old.Value) {
			return store.Write{}, leave
		}
		return store.Write{Value: value, ExpireAt: old.ExpireAt}, put
	})
	return v
}

func bitfieldRO(c *call) verdict {
	ops, ok := c.bitfieldOps()
	if !ok {
		return done
	}
	if bitfieldReach(ops) > 0 {
		return c.fail("ERR BITFIELD_RO only supports the GET subcommand")
	}
	return c.readBitfield(ops)
}

func (c *call) readBitfield(ops []bitfieldOp) verdict {
	view, _, v, ok := c.read(1)
	if !ok {
		return v
	}
	c.out.Array(len(ops))
	for _, op := range ops {
		c.out.Int(op.field.get(view.Value))
	}
	return done
}

// bitfieldReach is the length in bytes that the operations' writes need; 0 if
// they only read.
func bitfieldReach(ops []bitfieldOp) (n uint64) {
	for _, op := range ops {
		if op.kind != bitfieldGet {
			n = max(n, (op.field.end()+7)>>3)
		}
	}
	return n
}

// apply runs the operation on a value that reaches far enough, and answers:
// SET with the old value, the others with the new one.
func (op *bitfieldOp) apply(c *call, value []byte) {
	old := op.field.get(value)
	fitted, ok, answer := old, true, old
	switch op.kind {
	case bitfieldSet:
		fitted, ok = op.field.fit(op.operand, 0, op.overflow)
	case bitfieldIncrby:
		fitted, ok = op.field.fit(old, op.operand, op.overflow)
		answer = fitted
	}
	if !ok {
		c.out.Null()
		return
	}
	if op.kind != bitfieldGet {
		op.field.set(value, fitted)
	}
	c.out.Int(answer)
}

// bitfieldOps reads all the operations, or answers with an error.
func (c *call) bitfieldOps() (ops []bitfieldOp, ok bool) {
	overflow := overflowWrap
	for i := 2; i < len(c.args); {
		rest := len(c.args) - i - 1
		op := bitfieldOp{overflow: overflow}
		switch {
		case c.is(i, "get") && rest >= 2:
			op.kind = bitfieldGet
		case c.is(i, "set") && rest >= 3:
			op.kind = bitfieldSet
		case c.is(i, "incrby") && rest >= 3:
			op.kind = bitfieldIncrby
		case c.is(i, "overflow") && rest >= 1:
			if overflow, ok = overflowByName(c.args[i+1]); !ok {
				c.out.Error("ERR Invalid OVERFLOW type specified")
				return nil, false
			}
			i += 2
			continue
		default:
			c.out.Error(errSyntax)
			return nil, false
		}
		if op.field, ok = c.bitfieldArg(i + 1); !ok {
			return nil, false
		}
		i += 3
		if op.kind != bitfieldGet {
			if op.operand, ok = c.intArg(i); !ok {
				return nil, false
			}
			i++
		}
		ops = append(ops, op)
	}
	return ops, true
}

// bitfieldArg reads a type and an offset, or answers with an error.
func (c *call) bitfieldArg(i int) (f bitInt, ok bool) {
	name := []byte(cString(c.args[i]))
	var width int64
	if len(name) > 1 {
		f.signed = name[0] == 'i'
		width, ok = parseInt(name[1:])
		ok = ok && (f.signed && width <= 64 || name[0] == 'u' && width <= 63)
	}
	if !ok || width < 1 {
		c.out.Error("ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.")
		return f, false
	}
	f.width = uint(width)
	f.offset, ok = c.bitOffset(i+1, f.width)
	return f, ok
}

func overflowByName(name []byte) (overflowMode, bool) {
	switch {
	case equalFold(name, "wrap"):
		return overflowWrap, true
	case equalFold(name, "sat"):
		return overflowSaturate, true
	case equalFold(name, "fail"):
		return overflowFail, true
	}
	return 0, false
}
