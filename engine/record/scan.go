package record

import (
	"bytes"
	"encoding/binary"
	"iter"
)

// Extent is how much of a segment is whole.
type Extent struct {
	End     int   // Just after the last good seal; 0 if there is none.
	Batches int   // Seals up to End.
	Entries int   // Entries up to End: the segment header and voids count, seals do not.
	Closed  bool  // The last good seal closes the segment.
	Chain   Chain // Of the entries up to End; appending goes on from here.

	Batch BatchID // Of the last good seal.

	// Torn tells that something lies beyond End: a batch that did not arrive
	// whole. LostBytes is how far it reaches.
	Torn      bool
	LostBytes int
}

// ScanOptions is what the caller knows of a segment from elsewhere. The zero
// value knows nothing: then whatever is not whole may have been torn.
type ScanOptions struct {
	Closed    bool // The segment was closed and stored: all of it must be there.
	DurableTo int  // Bytes that were surely stored, up to the end of a seal.
	SkipCRC   bool // Trust the payloads. Headers and seals are checked all the same.

	// Only ends the scan at the first seal of a batch that it says no to, as if
	// that batch had not arrived. Nil takes all.
	Only func(BatchID) bool

	// Pause is called now and then, for a scan takes milliseconds. Nil is not.
	Pause func()
}

// Scan is ScanWith of a segment that nothing is known about.
func Scan(seg []byte, id SegmentID) (Extent, error) {
	return ScanWith(seg, id, ScanOptions{})
}

// ScanWith returns the longest prefix of seg that ends in a good seal: every
// entry in it is within bounds, makes sense and matches its CRC, and every seal
// matches the headers before it.
//
// The tail of an open segment may end at any byte, and after a power loss pages
// that were not synced may be missing in any order. So damage is taken for a
// torn write, and is no error, unless the options say that the damaged bytes
// had been safe: then the error is a CorruptError. The Extent beside it still
// tells what is whole. ErrFormat is an error in any case: such a segment must
// not be taken for an empty one.
//
// What follows a closing seal is no part of the segment. It is only counted.
func ScanWith(seg []byte, id SegmentID, o ScanOptions) (Extent, error) {
	s := scan{seg: seg, id: id, skipCRC: o.SkipCRC, only: o.Only, pause: o.Pause, chain: NewChain(id)}
	s.good.Chain = s.chain
	reason, err := s.run()
	ext := s.good
	ext.LostBytes = len(trimZeroes(seg[ext.End:]))
	ext.Torn = ext.LostBytes > 0
	switch {
	case err != nil:
		return ext, err
	case ext.End < o.DurableTo, o.Closed && !ext.Closed:
		return ext, &CorruptError{Segment: id, Offset: s.off, Reason: reason}
	}
	return ext, nil
}

// scan walks a segment. It trusts nothing beyond off.
//
// Invariant: every entry before off is whole, and chain covers it; every
// entry before good.End is sealed, too.
type scan struct {
	seg     []byte
	id      SegmentID
	skipCRC bool
	only    func(BatchID) bool
	pause   func()

	off     int
	entries int
	chain   Chain
	good    Extent
}

// pauseBytes is how much is scanned between two pauses.
const pauseBytes = 64 << 10

// run walks until something is not whole and says what, or to a closing seal.
func (s *scan) run() (reason string, err error) {
	if reason, err = s.first(); reason != "" || err != nil {
		return reason, err
	}
	for paused := 0; !s.good.Closed; {
		if reason = s.next(); reason != "" {
			return reason, nil
		}
		if s.pause != nil && s.off-paused >= pauseBytes {
			paused = s.off
			s.pause()
		}
	}
	return "segment is closed before the bytes known to be stored", nil
}

// first takes the segment header.
func (s *scan) first() (reason string, err error) {
	if reason = checkSegmentHeader(s.seg); reason != "" {
		return reason, nil
	}
	info, err := DecodeSegmentHeader(s.seg)
	switch {
	case err != nil:
		return "", err
	case info.ID != s.id || binary.LittleEndian.Uint64(s.seg[versionOffset:]) != uint64(s.id):
		return "header of another segment", nil
	case info.SegmentBytes < SegmentHeaderBytes || info.SegmentBytes > MaxSegmentBytes:
		return "segment size that no segment has", nil
	}
	s.seg = s.seg[:min(len(s.seg), int(info.SegmentBytes))]
	s.take(SegmentHeaderBytes)
	return "", nil
}

// next takes one entry or seal, or says why it cannot.
func (s *scan) next() (reason string) {
	rest := s.seg[s.off:]
	if len(rest) == 0 || rest[0] == 0 {
		return "ends without a closing seal"
	}
	n, reason := checkHeader(rest)
	if reason != "" {
		return reason
	}
	switch Type(rest[0] & 0x0f) {
	case TypeSeal:
		return s.seal(rest[:n])
	case TypeSegmentHeader:
		return "second segment header"
	}
	if !s.skipCRC {
		if reason = checkPayload(rest[:n]); reason != "" {
			return reason
		}
	}
	s.take(n)
	return ""
}

// take accepts the entry of n bytes at off.
func (s *scan) take(n int) {
	s.chain.Add(PtrOf(s.seg[s.off:]))
	s.off += n
	s.entries++
}

// seal accepts all before off, if the seal b says the same.
func (s *scan) seal(b []byte) (reason string) {
	tail := uint64(s.chain.sealSum(b)) | sealEndMark<<56
	if binary.LittleEndian.Uint64(b[sealSumAt:]) != tail {
		return "seal does not match the entries before it"
	}
	n := PtrOf(b).Batch()
	if s.only != nil && !s.only(n) {
		return "a batch that does not count"
	}
	s.off += SealBytes
	s.good.Batch = n
	s.good.End = s.off
	s.good.Batches++
	s.good.Entries = s.entries
	s.good.Closed = binary.LittleEndian.Uint64(b) == sealFront(true)
	s.good.Chain = s.chain
	return ""
}

// Entries walks the entries of seg with their offsets, from its start to its
// end or to the first byte that was never written; seals too. It checks
// nothing: seg is a prefix that Scan accepted.
func Entries(seg []byte) iter.Seq2[uint32, Ptr] {
	return func(yield func(uint32, Ptr) bool) {
		for off := 0; off < len(seg) && seg[off] != 0; {
			p := PtrOf(seg[off:])
			if !yield(uint32(off), p) {
				return
			}
			off += p.Length()
		}
	}
}

var zeroPage [4096]byte

// trimZeroes returns b without the zeroes at its end.
func trimZeroes(b []byte) []byte {
	for len(b) >= len(zeroPage) && bytes.Equal(b[len(b)-len(zeroPage):], zeroPage[:]) {
		b = b[:len(b)-len(zeroPage)]
	}
	for len(b) > 0 && b[len(b)-1] == 0 {
		b = b[:len(b)-1]
	}
	return b
}
