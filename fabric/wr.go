package fabric

// MaxPieces is how many local pieces a request may have.
const MaxPieces = 4

// Piece is local memory of a request: bytes of a region of the queue pair's domain.
type Piece struct {
	Addr  uint64
	Bytes uint32
	Key   uint32
}

// Target is remote memory of a request.
type Target struct {
	Key  uint64
	Addr uint64
}

// WR is a work request. Its bytes in a queue are those of layout.go.
type WR struct {
	ID     uint64
	Remote Target
	A, B   uint64 // CAS: compare and swap; ADD: the addend; WAIT: the count, and by how much it grows each round
	Local  [MaxPieces]Piece
	Imm    uint32
	CQ     uint32 // WAIT: the completion queue's number
	Pieces uint8  // how many of Local count
	Flags  Flags
	Op     Op

	// Unowned leaves the request to be handed over later, by HandOver or by a write
	// to its owner byte. Until then it holds the queue.
	Unowned bool
	// Returns makes it un-owned again each time in a queue that repeats.
	Returns bool
}

func (w WR) with(pieces []Piece) WR {
	w.Pieces = uint8(min(len(pieces), 255)) // A NIC refuses more than MaxPieces.
	copy(w.Local[:], pieces)
	return w
}

// Signal asks for a completion that carries id.
func (w WR) Signal(id uint64) WR {
	w.ID = id
	w.Flags |= Signaled
	return w
}

// Fence makes the request wait for all before it.
func (w WR) Fence() WR {
	w.Flags |= Fenced
	return w
}

// Defer leaves the request un-owned, in a queue that repeats each time.
func (w WR) Defer() WR {
	w.Unowned, w.Returns = true, true
	return w
}

// Nop does nothing in its turn.
func Nop() WR { return WR{Op: OpNop} }

// Write copies pieces to a remote address.
func Write(to Target, pieces ...Piece) WR { return WR{Op: OpWrite, Remote: to}.with(pieces) }

// WriteImm is Write, and completes a RECV of the peer with imm.
func WriteImm(to Target, imm uint32, pieces ...Piece) WR {
	return WR{Op: OpWriteImm, Remote: to, Imm: imm}.with(pieces)
}

// Read copies from a remote address to pieces.
func Read(from Target, pieces ...Piece) WR { return WR{Op: OpRead, Remote: from}.with(pieces) }

// CAS compares and swaps 8 aligned bytes; result gets what was there.
func CAS(at Target, compare, swap uint64, result ...Piece) WR {
	return WR{Op: OpCAS, Remote: at, A: compare, B: swap}.with(result)
}

// Add adds to 8 aligned bytes; result gets what was there.
func Add(at Target, addend uint64, result ...Piece) WR {
	return WR{Op: OpAdd, Remote: at, A: addend}.with(result)
}

// Flush completes when all before it is in the target's memory; with Persist in
// flags, when n bytes at the address are on its medium.
func Flush(at Target, n uint32, flags Flags) WR {
	w := WR{Op: OpFlush, Remote: at, Flags: flags}
	w.Local[0].Bytes = n
	return w
}

// Send copies pieces to the peer's next RECV.
func Send(pieces ...Piece) WR { return WR{Op: OpSend}.with(pieces) }

// Wait holds the queue until the completion queue has counted up to count.
func Wait(cq uint32, count uint64) WR { return WR{Op: OpWait, CQ: cq, A: count} }

// WaitEach is Wait in a queue that repeats: each round waits for so many more.
func WaitEach(cq uint32, count, more uint64) WR { return WR{Op: OpWait, CQ: cq, A: count, B: more} }

// Recv gives pieces to the peer's next SEND, filled in order.
func Recv(id uint64, pieces ...Piece) WR { return WR{Op: OpRecv, ID: id}.with(pieces) }
