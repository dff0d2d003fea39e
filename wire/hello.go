package wire

import (
	"encoding/binary"
	"fmt"
)

// Hello is what a client says first.
type Hello struct {
	Version uint16
	Client  uint64 // whose batches these will be, unless a batch says otherwise
	User    []byte
	Secret  []byte
}

// AppendHello appends a hello frame.
func AppendHello(b []byte, h *Hello) []byte {
	b, start := Begin(b, TypeHello)
	b = binary.LittleEndian.AppendUint16(b, h.Version)
	b = binary.LittleEndian.AppendUint16(b, 0)
	b = binary.LittleEndian.AppendUint64(b, h.Client)
	b = appendShort(b, h.User)
	b = appendShort(b, h.Secret)
	return End(b, start)
}

// DecodeHello reads the body of a hello. Versions to come may add fields behind those
// known here.
func DecodeHello(body []byte) (h Hello, err error) {
	r := reader{b: body}
	h.Version = r.u16()
	r.u16()
	h.Client = r.u64()
	h.User, h.Secret = r.short(), r.short()
	if r.err == nil && h.Version == Version {
		r.err = r.done()
	}
	return h, within(TypeHello, r.err)
}

// Welcome is a server's answer to a hello that it accepts.
type Welcome struct {
	Version     uint16
	MaxFrame    uint32 // longest frame that the server takes
	MaxOps      uint32 // most operations of a session that may be unanswered
	LeaseMillis uint32 // how long results of writes are remembered, for retries
	FirstTable  uint32 // what the session's table 0 is where keys are placed: that of a tenant, else 0
	Node        []byte
}

// AppendWelcome appends a welcome frame.
func AppendWelcome(b []byte, w *Welcome) []byte {
	b, start := Begin(b, TypeWelcome)
	b = binary.LittleEndian.AppendUint16(b, w.Version)
	b = binary.LittleEndian.AppendUint16(b, 0)
	b = binary.LittleEndian.AppendUint32(b, w.MaxFrame)
	b = binary.LittleEndian.AppendUint32(b, w.MaxOps)
	b = binary.LittleEndian.AppendUint32(b, w.LeaseMillis)
	b = binary.LittleEndian.AppendUint32(b, w.FirstTable)
	b = appendShort(b, w.Node)
	return End(b, start)
}

// DecodeWelcome reads the body of a welcome.
func DecodeWelcome(body []byte) (w Welcome, err error) {
	r := reader{b: body}
	w.Version = r.u16()
	r.u16()
	w.MaxFrame, w.MaxOps, w.LeaseMillis, w.FirstTable = r.u32(), r.u32(), r.u32(), r.u32()
	w.Node = r.short()
	return w, within(TypeWelcome, r.done())
}

// within names the frame that an error is about.
func within(t Type, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("read a %s frame: %w", t, err)
}
