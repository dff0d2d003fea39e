package wire

import (
	"encoding/binary"
	"fmt"
)

// Reason is why a server ends a session.
type Reason uint16

const (
	ReasonStopping    Reason = iota + 1 // the server stops; nothing is wrong
	ReasonVersion                       // the client speaks another version
	ReasonDenied                        // wrong or missing password
	ReasonMalformed                     // a frame makes no sense
	ReasonTooMany                       // too many sessions, or too much in flight
	ReasonLeaseLost                     // the node may not serve now; ask another
	ReasonUnavailable                   // the node cannot do its work
)

// Goodbye is the last frame of a session that the server ends. It is an error.
type Goodbye struct {
	Reason Reason
	Text   string
}

func (g *Goodbye) Error() string { return fmt.Sprintf("the server ended the session: %s", g.Text) }

// AppendGoodbye appends a goodbye frame.
func AppendGoodbye(b []byte, reason Reason, text string) []byte {
	b, start := Begin(b, TypeGoodbye)
	b = binary.LittleEndian.AppendUint16(b, uint16(reason))
	b = appendShort(b, text)
	return End(b, start)
}

// DecodeGoodbye reads the body of a goodbye.
func DecodeGoodbye(body []byte) (*Goodbye, error) {
	r := reader{b: body}
	g := &Goodbye{Reason: Reason(r.u16()), Text: string(r.short())}
	if err := r.done(); err != nil {
		return nil, within(TypeGoodbye, err)
	}
	return g, nil
}
