package extension

import (
	"bytes"
	"encoding/binary"
	"unsafe"
)

const (
	keyMost      = 65_535
	multigetMost = 4096
)

// get finds a value as the function sees it: its own write if there is one. It is described in t.value, field by field:
// a struct that is moved right after it was made keeps the processor waiting.
func (t *Task) get(table uint32, key, buf []byte) Status {
	v := &t.value
	v.Len, v.Version = 0, 0
	if len(key) > keyMost {
		return TooLarge
	}
	t.payKey(key)
	if len(t.changes.Writes) > 0 {
		if w := t.written(table, key); w != nil {
			return t.own(w, buf)
		}
	}
	if overlap(key, buf) {
		key = bytes.Clone(key) // The value may lie over it before it is remembered.
	}
	st := t.inv.Store.Get(table, key, buf, v)
	if e := v.refused; e != nil {
		v.refused = nil
		t.stop(e)
	}
	switch st {
	case OK, Absent:
		t.remember(table, key, v.Version)
	case Later:
		t.later()
	}
	t.spend(int64(v.Len / 16))
	return st
}

// keyUsual is up to which length a key is in the price of the call that names it.
const keyUsual = 256

// payKey charges for a key that is longer than usual: it is hashed, compared and kept.
func (t *Task) payKey(key []byte) {
	if more := len(key) - keyUsual; more > 0 {
		t.spend(int64(more) / 4)
	}
}

// own finds the value of the call's own write.
func (t *Task) own(w *Write, buf []byte) Status {
	if w.Delete {
		return Absent
	}
	t.value.Len, t.value.Whole = len(w.Value), w.Value
	t.spend(int64(len(w.Value) / 16))
	if len(w.Value) <= len(buf) {
		t.copyPieces(buf, w.Value)
	}
	return OK
}

// overlap tells whether two pieces of memory have a byte in common.
func overlap(a, b []byte) bool {
	x, y := uintptr(unsafe.Pointer(unsafe.SliceData(a))), uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return x < y+uintptr(len(b)) && y < x+uintptr(len(a))
}

// remember notes what was read, for the commit.
func (t *Task) remember(table uint32, key []byte, version uint64) {
	all := t.changes.Reads
	switch {
	case len(all) >= t.limits.Reads || len(t.names)+len(key) > t.limits.WriteBytes:
		t.over("read too many keys")
	case len(t.changes.Writes) > 0 && len(t.changes.Writes)+len(all) >= t.limits.Writes:
		t.overWrites()
	}
	at := len(t.names)
	t.names = append(t.names, key...)
	if len(all) < cap(all) {
		all = all[:len(all)+1]
	} else {
		all = append(all, Read{})
	}
	r := &all[len(all)-1]
	r.Table, r.Key, r.Version = table, t.names[at:len(t.names):len(t.names)], version
	t.changes.Reads = all
}

// view keeps a value for the rest of the call and returns its number.
func (t *Task) view(b []byte) uint64 {
	if e := t.viewable(len(b)); e != nil {
		t.stop(e)
	}
	t.viewBytes += len(b)
	t.views = append(t.views, b)
	return uint64(len(t.views))
}

// viewable tells why the call may not keep a value of so many bytes. If it may, the tenant's allowance knows of them.
func (t *Task) viewable(bytes int) *CallError {
	if len(t.views) >= t.limits.Views || t.viewBytes+bytes > t.limits.ViewBytes {
		return &CallError{Kind: OverLimit, Message: "holds too many values that it did not take"}
	}
	if err := t.hold(t.responded() + bytes); err != nil {
		return &CallError{Kind: OverLimit, Message: heldTooMuch + err.Error()}
	}
	return nil
}

// hostGet: table, key, key_len, buf, cap.
func (t *Task) hostGet(stack []uint64) {
	t.storeUse()
	key, buf := t.bytes(stack[1], stack[2]), t.bytes(stack[3], stack[4])
	if t.learns {
		t.learnFirst(stack)
	}
	st := t.get(uint32(stack[0]), key, buf)
	v := &t.value
	t.used[0].set(stack[3], uint64(v.Len))
	switch {
	case st != OK:
		stack[0] = uint64(int64(st))
	case v.Len > len(buf):
		stack[0] = t.view(v.Whole)<<32 | uint64(v.Len)
	default:
		stack[0] = uint64(v.Len)
	}
}

// hostRead: view, offset, buf, len.
func (t *Task) hostRead(stack []uint64) {
	t.enter()
	n := uint32(stack[0])
	if n == 0 || int(n) > len(t.views) {
		t.misuse("read from a view that it does not have")
	}
	from := t.views[n-1]
	from = from[min(int(uint32(stack[1])), len(from)):]
	copied := t.copyPieces(t.bytes(stack[2], stack[3]), from)
	t.spend(int64(copied / 16))
	stack[0] = uint64(copied)
}

// hostMultiget: table, keys, n, results, buf, cap.
func (t *Task) hostMultiget(stack []uint64) {
	t.storeUse()
	n := uint32(stack[2])
	if n > multigetMost {
		t.misuse("asked for too many keys at once")
	}
	keys, results := t.bytes(stack[1], uint64(n)*8), t.bytes(stack[3], uint64(n)*16)
	base, room := uint32(stack[4]), t.bytes(stack[4], stack[5])
	found := uint64(0)
	told := t.inv.Ahead != nil && n > 1
	if told {
		t.ahead(stack)
	}
	for i := range int(n) {
		t.spend(50)
		ptr, size := binary.LittleEndian.Uint32(keys[8*i:]), binary.LittleEndian.Uint32(keys[8*i+4:])
		st := t.get(uint32(stack[0]), t.bytes(uint64(ptr), uint64(size)), room)
		v := &t.value
		var at, view uint32
		length := int32(st)
		if st == OK {
			found++
			length = int32(v.Len)
			if v.Len > len(room) {
				view = uint32(t.view(v.Whole))
			} else {
				at = base
				base, room = base+uint32(v.Len), room[v.Len:]
			}
		}
		out := results[16*i:]
		binary.LittleEndian.PutUint32(out, at)
		binary.LittleEndian.PutUint32(out[4:], uint32(length))
		binary.LittleEndian.PutUint32(out[8:], view)
		binary.LittleEndian.PutUint32(out[12:], 0)
	}
	if told {
		t.inv.Ahead.Ahead(0, nil)
	}
	t.used[1].set(stack[3], uint64(n)*16)
	t.used[2].set(stack[1], uint64(n)*8)
	t.used[3].set(stack[4], uint64(base-uint32(stack[4])))
	stack[0] = found
}

// ahead tells the store which keys a multiget is about. If what it writes may lie over keys they are not known before.
func (t *Task) ahead(stack []uint64) {
	list, n := t.bytes(stack[1], 8*uint64(uint32(stack[2]))), min(int(uint32(stack[2])), aheadMost)
	results, room := spanOf(stack[3], 16*uint64(n)), spanOf(stack[4], stack[5])
	keys := t.keys[:0]
	for i := range n {
		ptr, size := binary.LittleEndian.Uint32(list[8*i:]), binary.LittleEndian.Uint32(list[8*i+4:])
		key, ok := t.in.mem.at(ptr, size)
		if own := spanOf(uint64(ptr), uint64(size)); !ok || size > keyMost || own.meets(results) || own.meets(room) {
			return
		}
		keys = append(keys, key)
	}
	t.inv.Ahead.Ahead(uint32(stack[0]), keys)
	clear(keys)
	t.keys = keys[:0]
}

// aheadMost is how many keys a store is told of before they are read.
const aheadMost = 32

// span is a part of guest memory.
type span struct{ from, to uint64 }

func spanOf(ptr, n uint64) span {
	from := uint64(uint32(ptr))
	return span{from, from + uint64(uint32(n))}
}

func (s *span) set(ptr, n uint64) {
	s.from = uint64(uint32(ptr))
	s.to = s.from + uint64(uint32(n))
}

func (s span) meets(o span) bool { return s.from < o.to && o.from < s.to }

// hostScan: table, cursor, prefix, prefix_len, buf, cap, flags.
func (t *Task) hostScan(stack []uint64) {
	t.storeUse()
	cursor := t.bytes(stack[1], 8)
	prefix, buf := t.bytes(stack[2], stack[3]), t.bytes(stack[4], stack[5])
	if len(prefix) > keyMost {
		stack[0] = status(TooLarge) // No key begins with it.
		return
	}
	t.payKey(prefix)
	prefix = bytes.Clone(prefix) // Entries may lie over it.
	values := stack[6]&1 != 0
	s := scanRoom{buf: buf, values: values}
	next, looked, st := t.inv.Store.Scan(uint32(stack[0]), binary.LittleEndian.Uint64(cursor), prefix, s.visit)
	t.spend(s.cost + int64(looked)*lookedCost)
	switch {
	case st == Later:
		t.later()
	case st != OK:
		stack[0] = status(st)
		return
	case s.tooLarge && s.entries == 0:
		stack[0] = status(TooLarge)
	default:
		stack[0] = uint64(s.entries)
	}
	binary.LittleEndian.PutUint64(cursor, next)
}

// lookedCost is the fuel for a record that a scan looks at, whosever it is.
const lookedCost = 100

// largeValue is from which length on a store may have to copy a value before it can show it.
const largeValue = 64 << 10

// scanRoom takes the entries of a scan as long as there is room.
type scanRoom struct {
	cost     int64 // charged when the store has let go of what it holds
	buf      []byte
	at       int
	values   bool
	entries  int
	tooLarge bool
	full     bool
}

func (s *scanRoom) visit(key, value []byte) bool {
	size := 8 + len(key)
	if s.values {
		size += len(value)
	}
	s.cost += int64(size/16) + 20
	if !s.values && len(value) > largeValue {
		s.cost += int64(len(value) / 16) // It was put together to tell its length.
	}
	if s.full || s.tooLarge {
		return false
	}
	if size > len(s.buf)-s.at {
		if size > len(s.buf) && s.entries == 0 {
			s.tooLarge = true
			return true // Skipped: it can never be given.
		}
		s.full = true
		return false
	}
	b := s.buf[s.at:]
	binary.LittleEndian.PutUint32(b, uint32(len(key)))
	binary.LittleEndian.PutUint32(b[4:], uint32(len(value)))
	n := 8 + copy(b[8:], key)
	if s.values {
		n += copy(b[n:], value)
	}
	s.at += n
	s.entries++
	return true
}
