package wire

import (
	"encoding/binary"

	"github.com/ostrodb/ostro/cluster/view"
)

// Stale rejects a batch whole: none of its operations was executed.
type Stale struct {
	Number uint32 // of the batch
	View   view.ViewID
}

// AppendStale appends a stale frame.
func AppendStale(b []byte, s Stale) []byte {
	b, start := Begin(b, TypeStale)
	b = binary.LittleEndian.AppendUint32(b, s.Number)
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint64(b, uint64(s.View))
	return End(b, start)
}

// DecodeStale reads the body of a stale frame.
func DecodeStale(body []byte) (s Stale, err error) {
	r := reader{b: body}
	s.Number = r.u32()
	r.u32()
	s.View = view.ViewID(r.u64())
	return s, within(TypeStale, r.done())
}

// AppendRefresh appends a frame that asks for a map.
func AppendRefresh(b []byte) []byte {
	b, start := Begin(b, TypeRefresh)
	return End(b, start)
}
