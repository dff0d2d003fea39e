// Package frame is what NICs say to each other over a stream: the bytes of
// requests and of their answers, and how two NICs make sure of each other
// first. It is pure but for the handshake, which reads and writes a connection.
//
// A stream carries the requests of one queue pair, in order; answers come back on
// the same stream. So a request that has to wait at the target holds up nothing
// but those behind it.
//
//	request := header payload?          WRITE and SEND carry bytes
//	answer  := header payload?          the answer to a READ carries bytes
//
// Every header has a fixed size and a mark; what is not a header that a NIC sends
// is malformed, and ends the stream.
package frame

import (
	"encoding/binary"
	"errors"

	"github.com/ostrodb/ostro/fabric"
)

// ErrMalformed says that the bytes are not what a NIC sends.
var ErrMalformed = errors.New("frame: malformed")

const (
	requestMark = 0x524f // "OR"
	answerMark  = 0x414f // "OA"
)

// RequestBytes is the size of a request's header, little-endian:
//
//	 0  1  operation
//	 1  1  flags: Persist or none
//	 2  2  mark
//	 4  4  sequence
//	 8  4  bytes: that follow, or that a READ or FLUSH is about
//	12  4  immediate
//	16  8  key
//	24  8  address
//	32  8  A
//	40  8  B
const RequestBytes = 48

// Request is one work request on its way.
type Request struct {
	Op    fabric.Op
	Flags fabric.Flags
	Seq   uint32
	Bytes uint32
	Imm   uint32
	At    fabric.Target
	A, B  uint64
}

// Payload is how many bytes follow the header.
func (r *Request) Payload() uint32 {
	switch r.Op {
	case fabric.OpWrite, fabric.OpWriteImm, fabric.OpSend:
		return r.Bytes
	}
	return 0
}

// Encode writes the header.
func (r *Request) Encode(to *[RequestBytes]byte) {
	le := binary.LittleEndian
	to[0], to[1] = byte(r.Op), byte(r.Flags)
	le.PutUint16(to[2:], requestMark)
	le.PutUint32(to[4:], r.Seq)
	le.PutUint32(to[8:], r.Bytes)
	le.PutUint32(to[12:], r.Imm)
	le.PutUint64(to[16:], r.At.Key)
	le.PutUint64(to[24:], r.At.Addr)
	le.PutUint64(to[32:], r.A)
	le.PutUint64(to[40:], r.B)
}

// Decode reads a header.
func (r *Request) Decode(from *[RequestBytes]byte) error {
	le := binary.LittleEndian
	*r = Request{
		Op: fabric.Op(from[0]), Flags: fabric.Flags(from[1]), Seq: le.Uint32(from[4:]), Bytes: le.Uint32(from[8:]),
		Imm: le.Uint32(from[12:]), At: fabric.Target{Key: le.Uint64(from[16:]), Addr: le.Uint64(from[24:])},
		A: le.Uint64(from[32:]), B: le.Uint64(from[40:]),
	}
	if le.Uint16(from[2:]) != requestMark || !travels(r.Op) || r.Flags&^fabric.Persist != 0 {
		return ErrMalformed
	}
	return nil
}

// travels tells whether requests of this kind go over the wire.
func travels(o fabric.Op) bool { return o >= fabric.OpWrite && o <= fabric.OpSend }

// AnswerBytes is the size of an answer's header, little-endian:
//
//	0  1  kind
//	1  1  status
//	2  2  mark
//	4  4  sequence
//	8  8  value
const AnswerBytes = 16

// Kind is what an answer says. Each also says that all requests before its
// sequence have been executed.
type Kind uint8

// Kinds.
const (
	Ack   Kind = 1 + iota // executed, up to and with the sequence
	Data                  // the bytes of a READ follow, value of them
	Value                 // an atomic found this value
	Nak                   // failed with the status; nothing behind it will be executed
)

// Answer is what comes back.
type Answer struct {
	Kind   Kind
	Status fabric.Status
	Seq    uint32
	Value  uint64
}

// Encode writes the header.
func (a *Answer) Encode(to *[AnswerBytes]byte) {
	le := binary.LittleEndian
	to[0], to[1] = byte(a.Kind), byte(a.Status)
	le.PutUint16(to[2:], answerMark)
	le.PutUint32(to[4:], a.Seq)
	le.PutUint64(to[8:], a.Value)
}

// Decode reads a header.
func (a *Answer) Decode(from *[AnswerBytes]byte) error {
	le := binary.LittleEndian
	*a = Answer{Kind: Kind(from[0]), Status: fabric.Status(from[1]), Seq: le.Uint32(from[4:]), Value: le.Uint64(from[8:])}
	if le.Uint16(from[2:]) != answerMark || a.Kind < Ack || a.Kind > Nak {
		return ErrMalformed
	}
	if failed := a.Status != fabric.OK; failed != (a.Kind == Nak) || a.Status > fabric.Flushed {
		return ErrMalformed
	}
	return nil
}
