package record

import "unsafe"

// Header is what an entry says besides its key and value.
type Header struct {
	Type     Type
	Kind     Kind
	Chunked  bool
	Table    TableID
	Version  uint64
	ExpireAt int64 // Unix milliseconds; 0 for never.
}

// Size returns the bytes of an entry, header and pad included.
func Size(keyLen, valueLen int, expiry bool) int {
	n := HeaderBytes + keyLen + valueLen
	if expiry {
		n += flagExpiry
	}
	return (n + alignment - 1) &^ (alignment - 1)
}

// Encode writes an entry to dst, which has room for Size bytes, and returns how
// many it wrote. Without withCRC the entry's CRC is zero until Finish.
func Encode(dst []byte, h *Header, key, value []byte, withCRC bool) int {
	if len(key) > MaxKeyBytes {
		panic("record: key longer than MaxKeyBytes")
	}
	n := Size(len(key), len(value), h.ExpireAt != 0)
	_ = dst[n-1] // A slice grows into its capacity unasked.
	dst = dst[:n]
	clear(dst[n-alignment:]) // The pad; what else lies there is written below.
	at := putHeader(dst, h, len(key), len(value))
	at += copy(dst[at:], key)
	copy(dst[at:], value)
	if withCRC {
		Finish(PtrOf(dst))
	}
	return n
}

// putHeader writes the header with its extensions, CRC zero, and returns where
// the key begins.
func putHeader(dst []byte, h *Header, keyLen, valueLen int) int {
	at, flags := HeaderBytes, uint64(0)
	p := PtrOf(dst)
	if h.ExpireAt != 0 {
		*(*int64)(unsafe.Add(p.p, at)) = h.ExpireAt
		at += flagExpiry
		flags = flagExpiry
	}
	if h.Chunked {
		flags |= flagChunked
	}
	flags |= uint64(len(dst) - at - keyLen - valueLen)
	p.setFront(uint64(h.Type) | uint64(h.Kind)<<4 | flags<<8 | uint64(keyLen)<<16 | uint64(len(dst))<<32)
	*p.version() = h.Version
	*(*uint64)(unsafe.Add(p.p, tableOffset)) = uint64(h.Table)
	return at
}

// EncodeVoid makes n bytes of dst dead filler; n is a multiple of 8 and not 0.
// Only the header is written: nothing ever reads the rest, whatever it holds.
func EncodeVoid(dst []byte, n int) {
	if n < alignment || n%alignment != 0 {
		panic("record: void of a length that no entry has")
	}
	_ = dst[n-1]
	clear(dst[:min(n, HeaderBytes)])
	PtrOf(dst).setFront(uint64(TypeVoid) | uint64(n)<<32)
}

func (p Ptr) setFront(front uint64) { *(*uint64)(p.p) = front }

func (p Ptr) setCRC(crc uint32) { *(*uint32)(unsafe.Add(p.p, crcOffset)) = crc }
