package fabric

import "encoding/binary"

// The bytes of a work request, little-endian:
//
//	  0  8  id
//	  8  8  remote key
//	 16 48  pieces 1 to 3: address 8, bytes 4, key 4
//	 64  4  key of piece 0
//	 68  4  completion queue of a WAIT
//	 72  1  1 if it is the host's again each time in a queue that repeats
//	 73  7  zero
//	 80  8  A    ┐                 ┐
//	 88  8  B    │                 │
//	 96  8  address of piece 0     │  what a peer fills in from afar:
//	104  4  bytes of piece 0       │  48 bytes for every operation,
//	108  4  immediate              │  the last 32 for all but atomics
//	112  8  remote address         │
//	120  4  zero                   │
//	124  1  number of pieces       │
//	125  1  flags                  │
//	126  1  operation              │
//	127  1  owner: 1 is the NIC    ┘
//
// Two things follow from the order and must stay so:
//   - The owner byte is the last one. Bytes land in increasing address order, so
//     a request that a remote write hands over is whole by then.
//   - Keys, and whether a request is the host's again, stand before what is filled in. A peer that may write the patch of a
//     request chooses addresses, but only in regions the poster chose.
const (
	SlotBytes   = 128
	PatchOffset = 80 // CAS, ADD and everything else
	CopyOffset  = 96 // WRITE, SEND, READ, FLUSH, NOP: A and B stay
	OwnerOffset = 127

	OwnedByHost = 0
	OwnedByNIC  = 1
)

// SlotAddr is the address of request index in a registered send queue.
func SlotAddr(index, depth uint64) uint64 { return index & (depth - 1) * SlotBytes }

// Encode writes the request into a slot, all of it but the owner byte, which
// becomes the host's.
func (w *WR) Encode(to *[SlotBytes]byte) {
	le := binary.LittleEndian
	le.PutUint64(to[0:], w.ID)
	le.PutUint64(to[8:], w.Remote.Key)
	for i := 1; i < MaxPieces; i++ {
		at := to[16*i:]
		le.PutUint64(at, w.Local[i].Addr)
		le.PutUint32(at[8:], w.Local[i].Bytes)
		le.PutUint32(at[12:], w.Local[i].Key)
	}
	le.PutUint32(to[64:], w.Local[0].Key)
	le.PutUint32(to[68:], w.CQ)
	le.PutUint64(to[72:], 0)
	if w.Returns {
		to[72] = 1
	}
	w.encodePatch((*[SlotBytes - PatchOffset]byte)(to[PatchOffset:]))
}

func (w *WR) encodePatch(to *[SlotBytes - PatchOffset]byte) {
	le := binary.LittleEndian
	le.PutUint64(to[0:], w.A)
	le.PutUint64(to[8:], w.B)
	le.PutUint64(to[16:], w.Local[0].Addr)
	le.PutUint32(to[24:], w.Local[0].Bytes)
	le.PutUint32(to[28:], w.Imm)
	le.PutUint64(to[32:], w.Remote.Addr)
	le.PutUint64(to[40:], uint64(w.Pieces)<<32|uint64(w.Flags)<<40|uint64(w.Op)<<48)
}

// Patch gives the bytes that, written at PatchOffset of an un-owned slot, make it
// this request and hand it over. Its tail from CopyOffset on does so for
// operations without A and B.
func (w *WR) Patch() [SlotBytes - PatchOffset]byte {
	var p [SlotBytes - PatchOffset]byte
	w.encodePatch(&p)
	p[len(p)-1] = OwnedByNIC
	return p
}

// Decode reads a slot. It takes any bytes: what they ask for is checked where it
// is executed.
func (w *WR) Decode(from *[SlotBytes]byte) {
	le := binary.LittleEndian
	w.ID = le.Uint64(from[0:])
	w.Remote.Key = le.Uint64(from[8:])
	for i := 1; i < MaxPieces; i++ {
		at := from[16*i:]
		w.Local[i] = Piece{le.Uint64(at), le.Uint32(at[8:]), le.Uint32(at[12:])}
	}
	w.Local[0] = Piece{le.Uint64(from[96:]), le.Uint32(from[104:]), le.Uint32(from[64:])}
	w.CQ = le.Uint32(from[68:])
	w.A = le.Uint64(from[80:])
	w.B = le.Uint64(from[88:])
	w.Imm = le.Uint32(from[108:])
	w.Remote.Addr = le.Uint64(from[112:])
	w.Pieces, w.Flags, w.Op = from[124], Flags(from[125]), Op(from[126])
	w.Unowned, w.Returns = from[OwnerOffset] != OwnedByNIC, from[72] == 1
}

// CompletionBytes is the size of a completion in its queue:
//
//	 0  8  id
//	 8  4  queue pair
//	12  4  bytes
//	16  4  immediate
//	20  1  status
//	21  1  operation
//	22  1  1 if there is an immediate
//	23  9  zero
const CompletionBytes = 32

// Encode writes the completion.
func (c *Completion) Encode(to *[CompletionBytes]byte) {
	le := binary.LittleEndian
	le.PutUint64(to[0:], c.ID)
	le.PutUint32(to[8:], c.QP)
	le.PutUint32(to[12:], c.Bytes)
	tail := uint64(c.Imm) | uint64(c.Status)<<32 | uint64(c.Op)<<40
	if c.HasImm {
		tail |= 1 << 48
	}
	le.PutUint64(to[16:], tail)
	le.PutUint64(to[24:], 0)
}

// Decode reads a completion.
func (c *Completion) Decode(from *[CompletionBytes]byte) {
	le := binary.LittleEndian
	*c = Completion{
		ID: le.Uint64(from[0:]), QP: le.Uint32(from[8:]), Bytes: le.Uint32(from[12:]), Imm: le.Uint32(from[16:]),
		Status: Status(from[20]), Op: Op(from[21]), HasImm: from[22] == 1,
	}
}
