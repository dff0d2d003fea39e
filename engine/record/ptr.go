package record

import (
	"sync/atomic"
	"unsafe"

	"github.com/ostrodb/ostro/internal/fence"
)

const (
	// HeaderBytes is the fixed front of every entry but seals and short voids.
	HeaderBytes = 24
	// MaxKeyBytes is the longest key: its length is 16 bits.
	MaxKeyBytes = 1<<16 - 1

	alignment = 8

	versionOffset = 8
	tableOffset   = 16
	crcOffset     = 20
)

// Flags are the second byte of an entry. The bit of an extension also tells its
// length, and extensionBytes leans on that: an expiry has the bit 8 and 8 bytes,
// a client the bit 32 and half as many.
const (
	flagPadMask = 0x07
	flagExpiry  = 0x08
	flagChunked = 0x10
	flagClient  = 0x20
	flagsUnused = 0xC0
)

// VersionLock is the lock bit of a version. Who sets it by LockVersion owns the
// value until UnlockVersion; readers that see it, or see the version change
// around their read, read again. Versions proper are 63 bits.
const VersionLock = 1 << 63

// Ptr is an entry where it lies: in memory outside the Go heap, or in a slice
// that the caller keeps alive. It checks nothing; take one only of bytes that
// were just encoded, or that Scan or Check accepted.
//
// Who owns which bytes when: the appender owns all of them until it publishes
// the address. From then on everything but version and value is constant, and
// those two change only under the version's lock bit, in logs that allow
// updates in place.
//
// Version, SetVersion, LockVersion and UnlockVersion are atomic and need the
// entry to be 8-aligned. A seal has only Type, Flags, KeyLen and Length, and so
// has a void shorter than HeaderBytes.
type Ptr struct{ p unsafe.Pointer }

// At returns the entry at off in the segment that starts at base.
func At(base unsafe.Pointer, off uint32) Ptr { return Ptr{unsafe.Add(base, off)} }

// PtrOf returns the entry that b starts with.
func PtrOf(b []byte) Ptr { return Ptr{unsafe.Pointer(unsafe.SliceData(b))} }

// IsNil reports whether p points at nothing.
func (p Ptr) IsNil() bool { return p.p == nil }

// Pointer returns the address of the entry's first byte.
func (p Ptr) Pointer() unsafe.Pointer { return p.p }

// front returns the first eight bytes: type and kind, flags, key length, length.
func (p Ptr) front() uint64 { return *(*uint64)(p.p) }

// Type returns what the entry is.
func (p Ptr) Type() Type { return Type(*(*uint8)(p.p) & 0x0f) }

// Kind returns the type of the value.
func (p Ptr) Kind() Kind { return Kind(*(*uint8)(p.p) >> 4) }

// Flags returns the second byte as it is.
func (p Ptr) Flags() uint8 { return *(*uint8)(unsafe.Add(p.p, 1)) }

// Length returns the bytes of the whole entry, header and pad included.
func (p Ptr) Length() int { return int(*(*uint32)(unsafe.Add(p.p, 4))) }

// Version returns the version word as it is, lock bit included.
func (p Ptr) Version() uint64 { return atomic.LoadUint64(p.version()) }

// SetVersion stores the version word.
func (p Ptr) SetVersion(v uint64) { atomic.StoreUint64(p.version(), v) }

// LockVersion sets the lock bit if the version is still old, and reports
// whether it did. old must not carry the bit.
func (p Ptr) LockVersion(old uint64) bool {
	if !atomic.CompareAndSwapUint64(p.version(), old, old|VersionLock) {
		return false
	}
	fence.Stores() // Or the change of the value might be seen before the lock.
	return true
}

// Unchanged reports whether the version still is what it was before the caller
// copied the value: then the copy is whole.
func (p Ptr) Unchanged(version uint64) bool {
	fence.Loads() // Or the copy might be newer than this look.
	return p.Version() == version
}

// UnlockVersion ends what LockVersion began: it publishes the value under the
// version v. To leave the value as it was, v is the old version.
func (p Ptr) UnlockVersion(v uint64) { fence.Publish(p.version(), v) }

func (p Ptr) version() *uint64 { return (*uint64)(unsafe.Add(p.p, versionOffset)) }

// Table returns the table of the key.
func (p Ptr) Table() TableID { return *(*TableID)(unsafe.Add(p.p, tableOffset)) }

// CRC returns the stored CRC-32C of all that follows the header.
func (p Ptr) CRC() uint32 { return *(*uint32)(unsafe.Add(p.p, crcOffset)) }

// HasExpiry reports whether the entry names a time to expire at.
func (p Ptr) HasExpiry() bool { return p.Flags()&flagExpiry != 0 }

// ExpireAt returns when the entry expires, in Unix milliseconds, or 0 for never.
func (p Ptr) ExpireAt() int64 {
	if !p.HasExpiry() {
		return 0
	}
	return *(*int64)(unsafe.Add(p.p, HeaderBytes))
}

// Chunked reports whether the value is a list of the chunks that hold the real one.
func (p Ptr) Chunked() bool { return p.Flags()&flagChunked != 0 }

// Where the parts of an entry are, for those who read it by assembly: what of its
// first four bytes is plainFront if it is a plain one with a key of eight.
const (
	PlainMask8  = special | MaxKeyBytes<<16
	PlainFront8 = uint32(TypePut) | 8<<16
	TableOffset = tableOffset
)

// special covers what tells a plain entry from any other: a put without
// extensions, whose value is in one piece.
const special = 0x0f | (flagExpiry|flagChunked|flagClient)<<8

// Key returns the key where it lies. Like Value it is cut out of the entry, for
// a pointer to an empty key or value must not point past the entry's end.
func (p Ptr) Key() []byte {
	f := p.front()
	return p.upTo(keyOffset(f) + keyLen(f))[keyOffset(f):]
}

// Value returns the value where it lies.
func (p Ptr) Value() []byte {
	f := p.front()
	return p.upTo(valueEnd(f))[keyOffset(f)+keyLen(f):]
}

// ValueLen returns the bytes of the value.
func (p Ptr) ValueLen() int {
	f := p.front()
	return int(valueEnd(f) - keyOffset(f) - keyLen(f))
}

// Bytes returns the whole entry, header and pad included.
func (p Ptr) Bytes() []byte { return unsafe.Slice((*byte)(p.p), p.Length()) }

// KeyIs reports whether the entry is of this key of this table. Lengths and
// tables are compared first: they lie in the line already loaded. An empty key may
// stand at the entry's end, where no pointer may point.
func (p Ptr) KeyIs(table TableID, key []byte) bool {
	f := p.front()
	return keyLen(f) == uint64(len(key)) && p.Table() == table &&
		(len(key) == 0 || same(unsafe.Add(p.p, keyOffset(f)), unsafe.Pointer(unsafe.SliceData(key)), len(key)))
}

// PlainKeyIs reports whether the entry is plain and of this key of this table.
func (p Ptr) PlainKeyIs(table TableID, key []byte) bool {
	const looked = special | MaxKeyBytes<<16
	return p.front()&looked == uint64(TypePut)|uint64(len(key))<<16 && p.Table() == table &&
		(len(key) == 0 || same(unsafe.Add(p.p, HeaderBytes), unsafe.Pointer(unsafe.SliceData(key)), len(key)))
}

// PlainOf reports whether the entry is plain and of a table.
func (p Ptr) PlainOf(table TableID) bool {
	return p.front()&special == uint64(TypePut) && p.Table() == table
}

// PlainValue is Value of a plain entry.
func (p Ptr) PlainValue() []byte {
	f := p.front()
	return p.upTo(valueEnd(f))[HeaderBytes+keyLen(f):]
}

// IsWord reports of a plain entry with a key of eight bytes whether its value has as
// many.
func (p Ptr) IsWord() bool {
	const front = (HeaderBytes+16)<<32 | 8<<16
	return p.front()>>8 == front>>8
}

// Word is Value of an entry that IsWord, as a number.
func (p Ptr) Word() *uint64 { return (*uint64)(unsafe.Add(p.p, HeaderBytes+8)) }

func (p Ptr) upTo(n uint64) []byte { return unsafe.Slice((*byte)(p.p), n) }

// The fields of a front word.

func keyLen(front uint64) uint64 { return front >> 16 & MaxKeyBytes }

func length(front uint64) uint64 { return front >> 32 }

func keyOffset(front uint64) uint64 { return HeaderBytes + extensionBytes(front) }

// extensionBytes is 8 for an expiry and 16 for a client, read off their bits.
func extensionBytes(front uint64) uint64 {
	return front>>8&flagExpiry + front>>9&(flagClient>>1)
}

// valueEnd returns where the value ends and the pad begins.
func valueEnd(front uint64) uint64 { return length(front) - front>>8&flagPadMask }
