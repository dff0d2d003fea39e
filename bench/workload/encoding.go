package workload

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Encoding turns a record's number into its key. Every key of an encoding has
// the same length, so that buffers are built once and patched in place.
type Encoding uint8

const (
	// Binary8 is the number itself, as FASTER's benchmark keys are.
	Binary8 Encoding = iota
	// Text16 is redis-benchmark's key:000000000042.
	Text16
	// Text30 is user and 26 digits, the size of YCSB's keys.
	Text30
	// Tagged30 is as long, with a hash tag: all keys lie in one slot, and so on one
	// node of a cluster.
	Tagged30
)

const (
	text16Prefix = "key:"
	text30Prefix = "user00000000000000"
	tag30Prefix  = "{" + Tag + "}00000000000"
	digits       = 12 // that an id is written with; MaxRecords has ten
)

// Tag is the hash tag of Tagged30. Another one of its length may take its place.
const Tag = "bench"

// Len is the key's length in bytes.
func (e Encoding) Len() int {
	return [...]int{Binary8: 8, Text16: len(text16Prefix) + digits, Text30: len(text30Prefix) + digits, Tagged30: len(tag30Prefix) + digits}[e]
}

// Put writes the key of id to dst, which has at least Len bytes.
func (e Encoding) Put(dst []byte, id uint64) {
	switch e {
	case Binary8:
		binary.LittleEndian.PutUint64(dst, id)
	case Text16:
		copy(dst, text16Prefix)
		PutDigits(dst[len(text16Prefix):], id)
	case Text30:
		copy(dst, text30Prefix)
		PutDigits(dst[len(text30Prefix):], id)
	case Tagged30:
		copy(dst, tag30Prefix)
		PutDigits(dst[len(tag30Prefix):], id)
	}
}

// Patch turns the key of any id, already in dst, into the key of this one.
func (e Encoding) Patch(dst []byte, id uint64) {
	if e == Binary8 {
		binary.LittleEndian.PutUint64(dst, id)
		return
	}
	n := e.Len()
	PutDigits(dst[n-digits:n], id)
}

// PutDigits writes id as twelve decimal digits.
func PutDigits(dst []byte, id uint64) {
	_ = dst[digits-1]
	for i := digits - 2; i >= 0; i -= 2 {
		q := id / 100
		p := 2 * (id - 100*q)
		dst[i], dst[i+1] = twoDigits[p], twoDigits[p+1]
		id = q
	}
}

const twoDigits = "00010203040506070809" +
	"10111213141516171819" + "20212223242526272829" + "30313233343536373839" +
	"40414243444546474849" + "50515253545556575859" + "60616263646566676869" +
	"70717273747576777879" + "80818283848586878889" + "90919293949596979899"

// StampLen is how much of a value tells whose it is: id, a colon, generation.
const StampLen = 2*digits + 1

// FillValue writes a value that tells which record and which generation of it
// this is, as far as it has room: eight bytes hold the number itself. The first
// digits are PutDigits of the id, so a prepared value is turned into another
// record's by overwriting them.
func FillValue(dst []byte, id, generation uint64) {
	switch {
	case len(dst) >= StampLen:
		PutDigits(dst, id)
		dst[digits] = ':'
		PutDigits(dst[digits+1:], generation)
		for i := StampLen; i < len(dst); i++ {
			dst[i] = 'a' + byte(i%26)
		}
	case len(dst) >= 8:
		binary.LittleEndian.PutUint64(dst, id)
	}
}

// CheckValue says what is wrong with a value that FillValue wrote for id and
// generation with this size; scratch has at least size bytes.
func CheckValue(got []byte, id, generation uint64, size int, scratch []byte) error {
	want := scratch[:size]
	FillValue(want, id, generation)
	switch {
	case got == nil:
		return fmt.Errorf("record %d is missing", id)
	case !bytes.Equal(got, want):
		return fmt.Errorf("record %d holds %.40q, want %.40q", id, got, want)
	}
	return nil
}
