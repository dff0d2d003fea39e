package extension

import (
	"context"
	"encoding/binary"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/ostrodb/ostro/internal/background"
	"github.com/ostrodb/ostro/tenant/extension/meter"
)

// hostCall is a function that guests can import. Its arguments come on the stack, its result goes to stack[0].
type hostCall struct {
	name   string
	params string // a letter each: i for i32, l for i64
	result string
	call   func(t *Task, stack []uint64)
}

// hostCalls are those of the module "ostro"; docs/function-abi.md explains them.
var hostCalls = []hostCall{
	{"args", "ii", "i", (*Task).hostArgs},
	{"get", "iiiii", "l", (*Task).hostGet},
	{"read", "iiii", "i", (*Task).hostRead},
	{"multiget", "iiiiii", "i", (*Task).hostMultiget},
	{"alloc", "iiii", "i", (*Task).hostAlloc},
	{"fill", "iiii", "i", (*Task).hostFill},
	{"put", "il", "i", (*Task).hostPut},
	{"set", "iiiiil", "i", (*Task).hostSet},
	{"del", "iii", "i", (*Task).hostDel},
	{"scan", "iiiiiii", "i", (*Task).hostScan},
	{"resp", "ii", "i", (*Task).hostResp},
	{"yield", "", "", (*Task).hostYield},
	{"log", "iii", "", (*Task).hostLog},
	{"now", "", "l", (*Task).hostNow},
	{"random", "ii", "", (*Task).hostRandom},
	{"fail", "iii", "", (*Task).hostFail},
}

// HostModule is what guests import from.
const HostModule = meter.HostModule

func types(letters string) []api.ValueType {
	all := make([]api.ValueType, 0, len(letters))
	for _, c := range letters {
		if c == 'l' {
			all = append(all, api.ValueTypeI64)
		} else {
			all = append(all, api.ValueTypeI32)
		}
	}
	return all
}

func exportCalls(b wazero.HostModuleBuilder, calls []hostCall) wazero.HostModuleBuilder {
	for _, h := range calls {
		b = b.NewFunctionBuilder().WithGoFunction(hostFunc(h.call), types(h.params), types(h.result)).Export(h.name)
	}
	return b
}

// hostFunc is a host call as wazero makes it.
type hostFunc func(t *Task, stack []uint64)

// Call finds the task in its context: it is the context.
func (f hostFunc) Call(ctx context.Context, stack []uint64) { f(taskOf(ctx), stack) }

func status(s Status) uint64 { return uint64(uint32(s)) }

func hostSlice(ctx context.Context, stack []uint64) {
	stack[0] = uint64(taskOf(ctx).slice(int64(stack[0])))
}

// hostArgs: buf, cap.
func (t *Task) hostArgs(stack []uint64) {
	t.enter()
	buf := t.bytes(stack[0], stack[1])
	total := t.argsLen
	switch {
	case total <= len(buf):
		t.spend(int64(total / 16))
		putArgs(buf, t.inv)
	case len(buf) > 0:
		t.spend(int64(total / 16)) // There may be many, and a guest that wants to know how long they are need not take any.
		putSomeArgs(buf, t.inv)
	}
	stack[0] = uint64(total)
}

// putArgs writes the block of keys and arguments, for which there is room.
func putArgs(buf []byte, inv *Invocation) {
	keys, args := inv.Keys, inv.Args
	binary.LittleEndian.PutUint32(buf, uint32(len(keys)))
	binary.LittleEndian.PutUint32(buf[4:], uint32(len(args)))
	lens, bytes := buf[8:], buf[8+4*(len(keys)+len(args)):]
	for _, list := range [2][][]byte{keys, args} {
		for _, v := range list {
			binary.LittleEndian.PutUint32(lens, uint32(len(v)))
			lens, bytes = lens[4:], bytes[copy(bytes, v):]
		}
	}
}

// putSomeArgs writes the beginning of the block, of which only a part has room.
func putSomeArgs(buf []byte, inv *Invocation) {
	number := func(n int) {
		var b [4]byte
		binary.LittleEndian.PutUint32(b[:], uint32(n))
		buf = buf[copy(buf, b[:]):]
	}
	lists := [2][][]byte{inv.Keys, inv.Args}
	for _, list := range lists {
		number(len(list))
	}
	for _, list := range lists {
		for _, v := range list {
			number(len(v))
		}
	}
	for _, list := range lists {
		for _, v := range list {
			buf = buf[copy(buf, v):]
		}
	}
}

func argsLen(inv *Invocation) int {
	n := 8 + 4*(len(inv.Keys)+len(inv.Args))
	for _, v := range inv.Keys {
		n += len(v)
	}
	for _, v := range inv.Args {
		n += len(v)
	}
	return n
}

// hostResp: ptr, len.
func (t *Task) hostResp(stack []uint64) {
	t.enter()
	b := t.bytes(stack[0], stack[1])
	if t.tooLong(len(b)) {
		t.over("gave too long a response")
	}
	t.spend(int64(len(b) / 16))
	if t.responded()+len(b) > keptBytes {
		t.spend(int64(len(b) * freshUnits))
	}
	if e := t.respond(b); e != nil {
		t.stop(e)
	}
	stack[0] = 0
}

// freshUnits is what a byte of memory costs that nobody has used yet: many times what a copy does.
const freshUnits = 1

// hold has the tenant's allowance know, until the call's end, of what the call keeps: so many bytes of a response, what it
// writes, values that it did not take. Calls that wait in their midst keep all of that.
func (t *Task) hold(resp int) error {
	a, all := t.in.pool.opts.Memory, int64(resp+t.wroteSum+t.viewBytes)
	if a == nil || all <= max(t.lent, keptBytes) {
		return nil
	}
	all = (all + holdStep - 1) &^ (holdStep - 1)
	if err := a.Hold(all - t.lent); err != nil {
		return err
	}
	t.lent = all
	return nil
}

// holdStep is what is asked for at a time.
const holdStep = 1 << 20

const heldTooMuch = "keeps too much: "

// copyPieces is copy, with moments in it at which others may run.
func (t *Task) copyPieces(dst, src []byte) (n int) {
	src = src[:min(len(src), len(dst))]
	t.inPieces(src, func(piece []byte) { n += copy(dst[n:], piece) })
	return n
}

// inPieces has f do something with bytes, of which there may be many, a piece at a time. Others may run between two.
func (t *Task) inPieces(b []byte, f func(piece []byte)) {
	for len(b) > background.Piece {
		f(b[:background.Piece])
		b = b[background.Piece:]
		if t.inv.Turns != nil {
			t.yield(SliceEnd)
		}
	}
	f(b)
}

func (t *Task) hostYield([]uint64) {
	t.enter()
	t.yield(Asked)
}

const lineBytes = 1024

// hostLog: level, ptr, len.
func (t *Task) hostLog(stack []uint64) {
	t.enter()
	t.logLine(int(min(uint32(stack[0]), 3)), t.bytes(stack[1], stack[2]))
}

func (t *Task) logLine(level int, line []byte) {
	line = line[:min(len(line), lineBytes)]
	t.spend(int64(len(line)/16) + 50)
	if t.logged += len(line) + 1; t.logged > t.limits.LogBytes {
		t.lost++
		return
	}
	switch {
	case t.inv.Log == nil:
	case t.inv.Trial:
		t.lines = append(binary.LittleEndian.AppendUint16(append(t.lines, byte(level)), uint16(len(line))), line...)
	default:
		aloud(t.inv.Turns, func() { t.inv.Log(level, line) }) // Others write there, too.
	}
}

// tell logs what a trial has kept back.
func (t *Task) tell() {
	for b := t.lines; len(b) > 0; {
		n := int(binary.LittleEndian.Uint16(b[1:]))
		t.inv.Log(int(b[0]), b[3:][:n])
		b = b[3+n:]
	}
	t.lines = nil
}

func (t *Task) hostNow(stack []uint64) {
	t.enter()
	stack[0] = uint64(t.now())
}

func (t *Task) now() int64 {
	t.private = true
	return t.in.pool.opts.Clock.now()
}

// hostRandom: ptr, len.
func (t *Task) hostRandom(stack []uint64) {
	t.enter()
	t.random(t.bytes(stack[0], stack[1]))
}

func (t *Task) random(b []byte) {
	t.spend(int64(len(b)))
	t.private = true
	if t.in.chance == nil {
		t.in.chance = t.in.pool.chances()
	}
	t.inPieces(b, func(piece []byte) { _, _ = t.in.chance.Read(piece) })
}

// hostFail: code, ptr, len.
func (t *Task) hostFail(stack []uint64) {
	t.enter()
	b := t.bytes(stack[1], stack[2])
	message := string(b[:min(len(b), lineBytes)])
	if message == "" {
		message = "without a message"
	}
	t.stop(&CallError{Kind: Failed, Code: int32(uint32(stack[0])), Message: "failed: " + message})
}
