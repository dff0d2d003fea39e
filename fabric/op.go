package fabric

import "fmt"

// Op is what a work request does. Zero is no operation, so that memory never
// written is no request.
type Op uint8

// Operations.
const (
	OpNop      Op = 1 + iota // nothing; completes in its turn
	OpWrite                  // local pieces to the remote address
	OpWriteImm               // the same, then takes a RECV of the peer and completes it with Imm
	OpRead                   // remote address to local pieces
	OpCAS                    // if the 8 bytes at the remote address are A, make them B; the old ones go to piece 0
	OpAdd                    // add A to the 8 bytes at the remote address; the old ones go to piece 0
	OpFlush                  // everything before it is in memory; with Persist, on the medium
	OpSend                   // local pieces to the pieces of the peer's next RECV
	OpWait                   // hold the queue until completion queue CQ has counted A
	OpRecv                   // pieces for a SEND; in receive queues only
)

var opNames = [...]string{"none", "NOP", "WRITE", "WRITE_IMM", "READ", "CAS", "ADD", "FLUSH", "SEND", "WAIT", "RECV"}

func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return fmt.Sprintf("op %d", uint8(o))
}

// Flags change how a request is executed.
type Flags uint8

// Flags.
const (
	Signaled Flags = 1 << iota // completes into the completion queue; failures always do
	Fenced                     // starts only when all requests before it have completed
	Persist                    // FLUSH: reach the medium
)

// Access is what may be done with a region.
type Access uint8

// Rights. Local reading needs none.
const (
	LocalWrite Access = 1 << iota
	RemoteRead
	RemoteWrite
	RemoteAtomic

	Everything = LocalWrite | RemoteRead | RemoteWrite | RemoteAtomic
)

// Status is how a request ended.
type Status uint8

// Statuses.
const (
	OK            Status = iota
	BadRequest           // the request makes no sense: operation, pieces, alignment
	LocalAccess          // a local piece is outside its region, or the region is not there or not writable
	TooLong              // a SEND was longer than the RECV it met
	RemoteAccess         // wrong key, outside of the region, or no such right
	RemoteFault          // the target's memory failed, as when its file was cut
	RemoteInvalid        // the peer cannot do it: misaligned atomic, unknown operation
	NotReady             // no RECV came within the RNRWait
	PeerLost             // the connection broke; nobody knows whether the request took effect
	Flushed              // never started: the queue pair had failed
)

var statusNames = [...]string{
	"ok", "bad request", "local access error", "message longer than its RECV", "remote access error",
	"remote memory fault", "remote invalid request", "no RECV in time", "peer lost", "flushed",
}

func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return fmt.Sprintf("status %d", uint8(s))
}

// Completion is the end of one request.
type Completion struct {
	ID     uint64
	QP     uint32
	Bytes  uint32 // of the message, in completions of RECVs
	Imm    uint32
	Status Status
	Op     Op
	HasImm bool
}
