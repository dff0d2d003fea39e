package wire

import (
	"encoding/binary"
	"fmt"
	"sort"

	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// Map tells clients which node owns which places. Of two maps the one of the
// higher revision is the newer.
type Map struct {
	Revision uint64
	Nodes    []Node
	Spans    []Span // in order, without a gap, over all places
}

// Node is where an owner is met and the view it is in.
type Node struct {
	ID      string
	Address string // host:port; empty: where the map came from
	View    view.ViewID
}

// Span is the places up to Last, from the end of the span before.
type Span struct {
	Last record.Place
	Node int // in Nodes; Nobody while the places have no owner
}

// Nobody owns the places of a cluster before its first assignment.
const Nobody = 1<<16 - 1

// Owner returns the number of the node that owns p, or Nobody.
func (m *Map) Owner(p record.Place) int {
	i := sort.Search(len(m.Spans), func(i int) bool { return m.Spans[i].Last >= p })
	if i == len(m.Spans) {
		return Nobody
	}
	return m.Spans[i].Node
}

// AppendMap appends a map frame.
func AppendMap(b []byte, m *Map) []byte {
	b, start := Begin(b, TypeMap)
	b = binary.LittleEndian.AppendUint64(b, m.Revision)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(m.Nodes)))
	for _, n := range m.Nodes {
		b = appendShort(b, n.ID)
		b = appendShort(b, n.Address)
		b = binary.LittleEndian.AppendUint64(b, uint64(n.View))
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(m.Spans)))
	for _, s := range m.Spans {
		b = binary.LittleEndian.AppendUint64(b, uint64(s.Last))
		b = binary.LittleEndian.AppendUint16(b, uint16(s.Node))
	}
	return End(b, start)
}

var (
	errMapOrder = fmt.Errorf("%w: its spans are not in order", ErrMalformed)
	errMapNode  = fmt.Errorf("%w: a span belongs to a node that is not in it", ErrMalformed)
	errMapWhole = fmt.Errorf("%w: it does not cover all places", ErrMalformed)
)

// DecodeMap reads the body of a map frame. The map shares nothing with it.
func DecodeMap(body []byte) (*Map, error) {
	r := reader{b: body}
	m := &Map{Revision: r.u64()}
	for range r.u16() {
		n := Node{ID: string(r.short()), Address: string(r.short()), View: view.ViewID(r.u64())}
		if r.err != nil {
			return nil, within(TypeMap, r.err)
		}
		m.Nodes = append(m.Nodes, n)
	}
	for range r.u32() {
		s := Span{Last: record.Place(r.u64()), Node: int(r.u16())}
		if r.err != nil {
			return nil, within(TypeMap, r.err)
		}
		m.Spans = append(m.Spans, s)
	}
	if err := r.done(); err != nil {
		return nil, within(TypeMap, err)
	}
	return m, within(TypeMap, m.check())
}

func (m *Map) check() error {
	for i, s := range m.Spans {
		if i > 0 && s.Last <= m.Spans[i-1].Last {
			return errMapOrder
		}
		if s.Node >= len(m.Nodes) && s.Node != Nobody {
			return errMapNode
		}
	}
	if n := len(m.Spans); n == 0 || m.Spans[n-1].Last != view.Whole.Last {
		return errMapWhole
	}
	return nil
}
