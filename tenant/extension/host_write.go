package extension

import (
	"bytes"
	"fmt"
	"time"
)

// fewWrites are searched one by one; more have an index.
const fewWrites = 16

// written finds the function's own write of a key.
func (t *Task) written(table uint32, key []byte) *Write {
	all := t.changes.Writes
	if len(all) > fewWrites {
		if i, ok := t.in.index[writeKey{table, string(key)}]; ok {
			return &all[i]
		}
		return nil
	}
	for i := range all {
		if all[i].Table == table && bytes.Equal(all[i].Key, key) {
			return &all[i]
		}
	}
	return nil
}

type writeKey struct {
	table uint32
	key   string
}

// write collects a write. It is the last one of its key.
func (t *Task) write(w Write) {
	if have := t.written(w.Table, w.Key); have != nil {
		*have = w
		return
	}
	if len(t.changes.Writes)+len(t.changes.Reads) >= t.limits.Writes {
		t.overWrites()
	}
	t.changes.Writes = append(t.changes.Writes, w)
	t.indexWrites()
}

// overWrites ends a call that has more keys than can be applied in one piece.
func (t *Task) overWrites() {
	t.over(fmt.Sprintf("wrote too many keys: one that writes can have %d, those that it has read among them, so do it in several calls", t.limits.Writes))
}

func (t *Task) indexWrites() {
	all := t.changes.Writes
	switch {
	case len(all) <= fewWrites:
	case len(all) == fewWrites+1:
		t.in.index = make(map[writeKey]int)
		for i, w := range all {
			t.in.index[writeKey{w.Table, string(w.Key)}] = i
		}
	default:
		last := all[len(all)-1]
		t.in.index[writeKey{last.Table, string(last.Key)}] = len(all) - 1
	}
}

// mayWrite checks what every write must satisfy, and counts its bytes.
func (t *Task) mayWrite(table uint32, key []byte, n uint32) Status {
	switch {
	case t.inv.ReadOnly:
		return ReadOnly
	case len(key) > keyMost || int(n) > t.limits.ValueBytes:
		return TooLarge
	}
	t.payKey(key)
	if p := t.inv.Placed; p != nil {
		switch st := p.Place(table, key); st {
		case OK:
		case Later:
			t.later()
		default:
			return st
		}
	}
	if t.wroteSum += len(key) + int(n); t.wroteSum > t.limits.WriteBytes {
		t.over("wrote too much")
	}
	if err := t.hold(t.responded()); err != nil {
		t.over(heldTooMuch + err.Error())
	}
	t.spend(int64(len(key)+int(n))/16 + 50)
	return OK
}

// newValue makes a key and room for its value in one piece.
func newValue(table uint32, key []byte, n uint32) Write {
	both := make([]byte, len(key)+int(n))
	copy(both, key)
	return Write{Table: table, Key: both[:len(key):len(key)], Value: both[len(key):]}
}

// hostAlloc: table, key, key_len, len.
func (t *Task) hostAlloc(stack []uint64) {
	t.enter()
	key := t.bytes(stack[1], stack[2])
	if st := t.mayWrite(uint32(stack[0]), key, uint32(stack[3])); st != OK {
		stack[0] = status(st)
		return
	}
	if len(t.buffers) >= t.limits.Views {
		t.over("made too many buffers")
	}
	t.buffers = append(t.buffers, buffer{newValue(uint32(stack[0]), key, uint32(stack[3])), true})
	stack[0] = uint64(len(t.buffers) - 1)
}

func (t *Task) buffer(n uint64) *buffer {
	i := uint32(n)
	if int(i) >= len(t.buffers) || !t.buffers[i].open {
		t.misuse("used a buffer that it does not have")
	}
	return &t.buffers[i]
}

// hostFill: buffer, offset, ptr, len.
func (t *Task) hostFill(stack []uint64) {
	t.enter()
	b := t.buffer(stack[0])
	from := t.bytes(stack[2], stack[3])
	offset := uint64(uint32(stack[1]))
	if offset+uint64(len(from)) > uint64(len(b.write.Value)) {
		t.misuse("filled a buffer beyond its end")
	}
	t.spend(int64(len(from) / 16))
	t.copyPieces(b.write.Value[offset:], from)
	stack[0] = 0
}

// hostPut: buffer, ttl.
func (t *Task) hostPut(stack []uint64) {
	t.storeUse()
	b := t.buffer(stack[0])
	b.write.TTL = t.ttl(stack[1])
	t.write(b.write)
	*b = buffer{}
	stack[0] = 0
}

func (t *Task) ttl(millis uint64) time.Duration {
	if int64(millis) < 0 || int64(millis) > int64(1<<62)/int64(time.Millisecond) {
		t.misuse("gave a key a time to live that makes no sense")
	}
	return time.Duration(millis) * time.Millisecond
}

// hostSet: table, key, key_len, ptr, len, ttl.
func (t *Task) hostSet(stack []uint64) {
	t.storeUse()
	key, from := t.bytes(stack[1], stack[2]), t.bytes(stack[3], stack[4])
	if st := t.mayWrite(uint32(stack[0]), key, uint32(len(from))); st != OK {
		stack[0] = status(st)
		return
	}
	w := newValue(uint32(stack[0]), key, uint32(len(from)))
	t.copyPieces(w.Value, from)
	w.TTL = t.ttl(stack[5])
	t.write(w)
	stack[0] = 0
}

// hostDel: table, key, key_len.
func (t *Task) hostDel(stack []uint64) {
	t.storeUse()
	key := t.bytes(stack[1], stack[2])
	if st := t.mayWrite(uint32(stack[0]), key, 0); st != OK {
		stack[0] = status(st)
		return
	}
	t.write(Write{Table: uint32(stack[0]), Key: bytes.Clone(key), Delete: true})
	stack[0] = 0
}
