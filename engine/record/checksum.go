package record

import "hash/crc32"

// castagnoli is the polynomial that processors have an instruction for.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// payloadCRC returns the CRC-32C of what follows the header.
func (p Ptr) payloadCRC() uint32 {
	return crc32.Update(0, castagnoli, p.Bytes()[HeaderBytes:])
}

// CRCValid reports whether the bytes after the header are those that were
// written. Only entries with a full header and a checked payload have a CRC:
// not seals, not voids.
func (p Ptr) CRCValid() bool { return p.CRC() == p.payloadCRC() }

// Finish stores the CRC of an entry that was encoded without one. It must run
// before the entry joins a Chain, which covers the CRC too.
func Finish(p Ptr) { p.setCRC(p.payloadCRC()) }
