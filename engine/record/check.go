package record

import "encoding/binary"

// Check returns the entry that b starts with if it is whole: it lies within b,
// its header makes sense and its payload matches its CRC. It is for single
// entries read from afar; b may be longer than the entry. Seals are not checked
// alone, only with their segment.
func Check(b []byte) (Ptr, error) {
	n, reason := checkHeader(b)
	if reason == "" && Type(b[0]&0x0f) == TypeSeal {
		reason = "a seal, not an entry"
	}
	if reason == "" {
		reason = checkPayload(b[:n])
	}
	if reason != "" {
		return Ptr{}, &CorruptError{Reason: reason}
	}
	return PtrOf(b), nil
}

// Fits tells whether b begins with an entry of which all parts lie where they may: it ends within b, where the next one may begin, and its
// key within it. It looks at no sum and reads eight bytes: so it is for entries of a node that is trusted, as a walk goes over them, which
// ends then and reads nothing outside b, whatever the bytes are.
func Fits(b []byte) bool {
	if len(b) < frontBytes {
		return false
	}
	front := binary.LittleEndian.Uint64(b)
	size := length(front)
	if size > uint64(len(b)) || size%alignment != 0 {
		return false
	}
	switch Type(front & 0x0f) {
	case TypeNone:
		return false
	case TypeVoid, TypeSeal:
		return size >= frontBytes
	}
	return size >= keyOffset(front)+keyLen(front)+front>>8&flagPadMask
}

// FitsPlain returns the length of the entry that b starts with if it Fits, is plain and of a table; else 0.
func FitsPlain(b []byte, table TableID) int {
	if len(b) < HeaderBytes {
		return 0
	}
	p := PtrOf(b)
	front := p.front()
	size := length(front)
	if !p.PlainOf(table) || size > uint64(len(b)) || size%alignment != 0 || size < HeaderBytes+keyLen(front)+front>>8&flagPadMask {
		return 0
	}
	return int(size)
}

// checkHeader returns the length of the entry that b starts with, or why there
// is none: then nothing of b can be believed. It reads nothing outside b.
func checkHeader(b []byte) (n int, reason string) {
	if len(b) < frontBytes {
		return 0, "no room for an entry"
	}
	front := binary.LittleEndian.Uint64(b)
	size := length(front)
	if size > uint64(len(b)) {
		return 0, "entry ends outside its segment"
	}
	if size < frontBytes || size%alignment != 0 {
		return 0, "length that no entry has"
	}
	return int(size), checkFront(front, b)
}

// checkFront says why an entry with this front, which fits b, makes no sense.
func checkFront(front uint64, b []byte) string {
	switch t := Type(front & 0x0f); {
	case t == TypeNone || t > TypeCompletion:
		return "unknown type"
	case t == TypeSeal:
		return checkSealFront(front)
	case t == TypeVoid:
		if front&0xffff_ffff != uint64(TypeVoid) {
			return "void with kind, flags or key"
		}
		return ""
	}
	return checkRecord(front, b)
}

// checkRecord checks what is particular to entries with a full header.
func checkRecord(front uint64, b []byte) string {
	switch {
	case Kind(front>>4&0x0f) > KindStream:
		return "unknown kind"
	case front>>8&flagsUnused != 0:
		return "unknown flags"
	case length(front) < keyOffset(front)+keyLen(front)+front>>8&flagPadMask:
		return "key does not fit its entry"
	case binary.LittleEndian.Uint64(b[versionOffset:])&VersionLock != 0:
		return "version is locked"
	}
	return ""
}

func checkSealFront(front uint64) string {
	if front != sealFront(false) && front != sealFront(true) {
		return "seal that was never written"
	}
	return ""
}

// checkPayload says why the entry that fills b is not the one that was written.
// What lies in a void does not matter.
func checkPayload(b []byte) string {
	if p := PtrOf(b); p.Type() != TypeVoid && !p.CRCValid() {
		return "payload does not match its CRC"
	}
	return ""
}
