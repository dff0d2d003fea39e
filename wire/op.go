package wire

import (
	"encoding/binary"
	"fmt"
)

// Code is what an operation does.
type Code uint8

const (
	OpRead     Code = iota + 1
	OpPut           // arg: the value
	OpAdd           // arg: i64, added to an 8-byte counter; the result is the sum
	OpAppend        // arg: bytes to append; the result's value is the new length, u64
	OpSwap          // arg: Swap; compares the value and sets another
	OpMerge         // arg: Merge; a named function makes the new value
	OpDelete        //
	OpMultiGet      // arg: Keys; no key of its own
	OpMultiPut      // arg: Puts; no key of its own; all or none
	OpScan          // arg: Scan; no key of its own
	OpInvoke        // key: where to run; arg: Invoke, a function's name, more keys and its arguments
	OpPing          // arg: comes back
	OpModule        // arg: Module; no key of its own
	opEnd
)

var codeNames = [...]string{"nothing", "read", "put", "add", "append", "swap", "merge", "delete", "multi-get", "multi-put", "scan", "invoke", "ping", "module"}

func (c Code) String() string {
	if int(c) < len(codeNames) {
		return codeNames[c]
	}
	return fmt.Sprintf("operation %d", uint8(c))
}

// Writes tells whether the operation may change something.
func (c Code) Writes() bool {
	return c >= OpPut && c <= OpDelete || c == OpMultiPut || c == OpInvoke
}

// Grows tells whether the operation may make more of the data.
func (c Code) Grows() bool { return c >= OpPut && c < OpDelete || c == OpMultiPut }

// Keyed tells whether the operation's key says where it runs.
func (c Code) Keyed() bool { return c >= OpRead && c <= OpDelete || c == OpInvoke }

// Flags say which optional fields an operation has.
type Flags uint8

const (
	// FlagOnce: the operation has a sequence number and is executed once, however
	// often it is sent.
	FlagOnce Flags = 1 << iota
	// FlagExpire: a put's record has a time to expire at. A put without it never expires.
	FlagExpire
	// FlagIfVersion: only if the record has this version; 0: only if there is none.
	FlagIfVersion
	// FlagReadOnly: an invoked function may not write.
	FlagReadOnly

	flagsOptional = FlagOnce | FlagExpire | FlagIfVersion
	flagsKnown    = flagsOptional | FlagReadOnly
)

// Op is one operation of a batch.
type Op struct {
	Code     Code
	Flags    Flags
	Table    uint32 // below 65,536 on the wire; a server makes it the number of a table of its store
	Tag      uint32 // names the result
	Sequence uint64 // with FlagOnce
	ExpireAt int64  // with FlagExpire: Unix milliseconds
	Version  uint64 // with FlagIfVersion
	Key, Arg []byte
}

// Writes tells whether the operation may change something.
func (op *Op) Writes() bool { return op.Code.Writes() && op.Flags&FlagReadOnly == 0 }

const opBytes = 16

// Batch is the head of a batch.
type Batch struct {
	View   uint64 // the client's belief
	Client uint64
	First  uint64 // the lowest sequence number in it
	Acked  uint64 // results of all sequence numbers below have arrived
	Number uint32 // names the batch, for stale
	Count  uint32
}

const batchBytes = 40

// MaxTable is the highest number of a table that an operation can name.
const MaxTable = 1<<16 - 1

// BeginBatch appends the head of a batch frame. Operations follow, then EndBatch, which
// also fills in the count.
func BeginBatch(b []byte, h *Batch) (out []byte, start int) {
	b, start = Begin(b, TypeBatch)
	b = binary.LittleEndian.AppendUint64(b, h.View)
	b = binary.LittleEndian.AppendUint64(b, h.Client)
	b = binary.LittleEndian.AppendUint64(b, h.First)
	b = binary.LittleEndian.AppendUint64(b, h.Acked)
	b = binary.LittleEndian.AppendUint32(b, h.Number)
	b = binary.LittleEndian.AppendUint32(b, h.Count)
	return b, start
}

// EndBatch completes the batch that began at start.
func EndBatch(b []byte, start, count int) []byte {
	binary.LittleEndian.PutUint32(b[start+HeaderBytes+36:], uint32(count))
	return End(b, start)
}

// AppendOp appends an operation of a batch whose lowest sequence number is first.
func AppendOp(b []byte, op *Op, first uint64) []byte {
	b = append(b, byte(op.Code), byte(op.Flags))
	b = binary.LittleEndian.AppendUint16(b, uint16(op.Table))
	b = binary.LittleEndian.AppendUint32(b, op.Tag)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(op.Key)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(op.Arg)))
	if op.Flags&FlagOnce != 0 {
		b = binary.LittleEndian.AppendUint32(b, uint32(op.Sequence-first))
	}
	if op.Flags&FlagExpire != 0 {
		b = binary.LittleEndian.AppendUint64(b, uint64(op.ExpireAt))
	}
	if op.Flags&FlagIfVersion != 0 {
		b = binary.LittleEndian.AppendUint64(b, op.Version)
	}
	b = append(b, op.Key...)
	return append(b, op.Arg...)
}

// OpBytes bounds what AppendOp appends.
func OpBytes(op *Op) int { return opBytes + 20 + len(op.Key) + len(op.Arg) }

// Ops goes through the operations of a batch.
type Ops struct {
	Batch
	rest []byte
	left uint32
}

// DecodeBatch reads the head of a batch and stands before its first operation.
func DecodeBatch(body []byte) (o Ops, err error) {
	if len(body) < batchBytes {
		return o, within(TypeBatch, ErrShort)
	}
	o.Batch = Batch{
		View:   binary.LittleEndian.Uint64(body),
		Client: binary.LittleEndian.Uint64(body[8:]),
		First:  binary.LittleEndian.Uint64(body[16:]),
		Acked:  binary.LittleEndian.Uint64(body[24:]),
		Number: binary.LittleEndian.Uint32(body[32:]),
		Count:  binary.LittleEndian.Uint32(body[36:]),
	}
	o.rest, o.left = body[batchBytes:], o.Count
	if uint64(o.left)*opBytes > uint64(len(o.rest)) {
		return o, within(TypeBatch, ErrShort)
	}
	if o.left == 0 && len(o.rest) > 0 {
		return o, within(TypeBatch, ErrTrailing)
	}
	return o, nil
}

// More tells whether there are operations left.
func (o *Ops) More() bool { return o.left > 0 }

// Next reads the next operation into op; its bytes are the batch's.
func (o *Ops) Next(op *Op) error {
	b := o.rest
	if len(b) < opBytes {
		return within(TypeBatch, ErrShort)
	}
	*op = Op{Code: Code(b[0]), Flags: Flags(b[1]), Table: uint32(binary.LittleEndian.Uint16(b[2:])), Tag: binary.LittleEndian.Uint32(b[4:])}
	key, arg := uint64(binary.LittleEndian.Uint32(b[8:])), uint64(binary.LittleEndian.Uint32(b[12:]))
	if op.Code == 0 || op.Code >= opEnd || op.Flags&^flagsKnown != 0 || op.Flags&FlagReadOnly != 0 && op.Code != OpInvoke {
		return within(TypeBatch, fmt.Errorf("%w: no such operation: %s with flags %#x", ErrMalformed, op.Code, uint8(op.Flags)))
	}
	b = b[opBytes:]
	if need := optionalBytes[op.Flags&flagsOptional]; uint64(len(b)) < need+key+arg {
		return within(TypeBatch, ErrShort)
	}
	if op.Flags != 0 {
		b = op.optional(b, o.First)
	}
	op.Key, op.Arg, o.rest = b[:key:key], b[key:key+arg:key+arg], b[key+arg:]
	o.left--
	if o.left == 0 && len(o.rest) > 0 {
		return within(TypeBatch, ErrTrailing)
	}
	return nil
}

// optionalBytes is what the optional fields take, by flags.
var optionalBytes = [flagsOptional + 1]uint64{
	FlagOnce: 4, FlagExpire: 8, FlagOnce | FlagExpire: 12,
	FlagIfVersion: 8, FlagIfVersion | FlagOnce: 12, FlagIfVersion | FlagExpire: 16, flagsOptional: 20,
}

func (op *Op) optional(b []byte, first uint64) []byte {
	if op.Flags&FlagOnce != 0 {
		op.Sequence = first + uint64(binary.LittleEndian.Uint32(b))
		b = b[4:]
	}
	if op.Flags&FlagExpire != 0 {
		op.ExpireAt = int64(binary.LittleEndian.Uint64(b))
		b = b[8:]
	}
	if op.Flags&FlagIfVersion != 0 {
		op.Version = binary.LittleEndian.Uint64(b)
		b = b[8:]
	}
	return b
}
