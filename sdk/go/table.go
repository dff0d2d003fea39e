//go:build wasip1

package ostro

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"time"
	"unsafe"
)

// Table is one of the tenant's tables; the zero value is the default one.
type Table struct{ ID uint32 }

// usual is the length that most values have at most: they are read by one call.
const usual = 512

// Get returns the value of a key, and whether it is there.
func (t Table) Get(key []byte) (value []byte, found bool, err error) {
	buf := make([]byte, usual)
	k, kn := start(key)
	b, bn := start(buf)
	result := abiGet(t.ID, k, kn, b, bn)
	switch view, n := uint32(result>>32), uint32(result); {
	case result == absent:
		return nil, false, nil
	case result < 0:
		return nil, false, check(int32(result))
	case view == 0:
		return buf[:n:n], true, nil
	default:
		return read(view, n), true, nil
	}
}

func read(view, n uint32) []byte {
	value := make([]byte, n)
	at, n := start(value)
	abiRead(view, 0, at, n)
	return value
}

// Multiget returns the values of many keys, 4,096 at most, in the keys' order;
// nil for those that are not there.
func (t Table) Multiget(keys ...[]byte) ([][]byte, error) {
	spans, results := make([]uint32, 2*len(keys)), make([]uint32, 4*len(keys))
	buf := make([]byte, 64*len(keys))
	joined := joinedKeys(keys, spans)
	b, bn := start(buf)
	spansAt, resultsAt := unsafe.Pointer(unsafe.SliceData(spans)), unsafe.Pointer(unsafe.SliceData(results))
	if err := check(abiMultiget(t.ID, spansAt, uint32(len(keys)), resultsAt, b, bn)); err != nil {
		return nil, err
	}
	runtime.KeepAlive(joined)
	values := make([][]byte, len(keys))
	for i := range values {
		at, n, view := results[4*i], int32(results[4*i+1]), results[4*i+2]
		switch {
		case n == absent:
		case n < 0:
			return nil, check(n)
		case view != 0:
			values[i] = read(view, uint32(n))
		case n == 0:
			values[i] = []byte{}
		default:
			from := at - uint32(uintptr(b))
			values[i] = buf[from : from+uint32(n) : from+uint32(n)]
		}
	}
	return values, nil
}

// joinedKeys copies keys to the heap, where nothing moves, and notes where they are.
func joinedKeys(keys [][]byte, spans []uint32) []byte {
	joined := bytes.Join(keys, nil)
	at := uint32(uintptr(unsafe.Pointer(unsafe.SliceData(joined))))
	for i, key := range keys {
		spans[2*i], spans[2*i+1] = at, uint32(len(key))
		at += uint32(len(key))
	}
	return joined
}

// Set gives a key a value, which does not expire.
func (t Table) Set(key, value []byte) error { return t.SetFor(key, value, 0) }

// SetFor gives a key a value that expires; with 0 it does not.
func (t Table) SetFor(key, value []byte, ttl time.Duration) error {
	k, kn := start(key)
	v, vn := start(value)
	return check(abiSet(t.ID, k, kn, v, vn, ttl.Milliseconds()))
}

// Del removes a key, if it is there.
func (t Table) Del(key []byte) error {
	k, kn := start(key)
	return check(abiDel(t.ID, k, kn))
}

// Buffer is a new value in the store's memory, written piece by piece and copied
// no further. Bytes never written are zero.
type Buffer struct {
	id   int32
	next uint32
}

// Alloc begins a value of exactly n bytes.
func (t Table) Alloc(key []byte, n int) (*Buffer, error) {
	k, kn := start(key)
	id := abiAlloc(t.ID, k, kn, uint32(n))
	if err := check(id); err != nil {
		return nil, err
	}
	return &Buffer{id: id}, nil
}

// Write appends a piece.
func (b *Buffer) Write(piece []byte) (int, error) {
	at, n := start(piece)
	if err := check(abiFill(b.id, b.next, at, n)); err != nil {
		return 0, err
	}
	b.next += n
	return len(piece), nil
}

// Put makes the buffer its key's value; ttl 0: it does not expire.
func (b *Buffer) Put(ttl time.Duration) error { return check(abiPut(b.id, ttl.Milliseconds())) }

// Scan calls visit with the tenant's keys of this node that begin with a prefix,
// and their values, in no order, until it returns false. Entries larger than 64
// KiB are left out, and their number is returned.
func (t Table) Scan(prefix []byte, visit func(key, value []byte) bool) (skipped int, err error) {
	var cursor uint64
	buf := make([]byte, 64<<10)
	p, pn := start(prefix)
	for {
		b, bn := start(buf)
		n := abiScan(t.ID, unsafe.Pointer(&cursor), p, pn, b, bn, 1)
		if n == tooLarge {
			skipped++
		} else if err := check(n); err != nil {
			return skipped, err
		}
		for at := buf; n > 0; n-- {
			kn, vn := binary.LittleEndian.Uint32(at), binary.LittleEndian.Uint32(at[4:])
			entry := at[8 : 8+kn+vn]
			at = at[8+kn+vn:]
			if !visit(entry[:kn:kn], entry[kn:]) {
				return skipped, nil
			}
		}
		if cursor == 0 {
			return skipped, nil
		}
	}
}

const tooLarge = -3
