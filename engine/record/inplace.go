package record

import "unsafe"

// Rewrite replaces the value and expiry of an entry whose total length and
// extensions stay as they are. The caller holds the entry's version lock; the
// checksum is left to Finish.
func (p Ptr) Rewrite(value []byte, expireAt int64) {
	front := p.front()
	at := keyOffset(front) + keyLen(front)
	pad := length(front) - at - uint64(len(value))
	if p.HasExpiry() {
		*(*int64)(unsafe.Add(p.p, HeaderBytes)) = expireAt
	}
	tail := unsafe.Slice((*byte)(unsafe.Add(p.p, at)), length(front)-at)
	copy(tail, value)
	clear(tail[len(value):])
	p.setFront(front&^(flagPadMask<<8) | pad<<8)
}

// Batch returns the number of the batch that the seal p ends.
func (p Ptr) Batch() BatchID { return BatchID(*(*uint64)(unsafe.Add(p.p, sealBatch))) }

// IsSeal tells whether b has the form of a seal; the sum is the scan's business.
func IsSeal(b []byte) bool {
	return len(b) == SealBytes && Type(b[0]&0x0f) == TypeSeal && b[SealBytes-1] == sealEndMark
}

// IsClosingSeal tells whether b is a seal that closes its segment. It checks
// the form only; the sum is the scan's business.
func IsClosingSeal(b []byte) bool {
	return len(b) == SealBytes && PtrOf(b).front() == sealFront(true) && b[SealBytes-1] == sealEndMark
}
