package view

import "github.com/ostrodb/ostro/engine/record"

// Floor says from where on a log counts for some ranges: it had them in an earlier life, gave
// them away, and got them again. What it holds from before does not count, neither
// for its own node nor for heirs.
type Floor struct {
	Ranges  Ranges           `json:"ranges"`
	Batch   record.BatchID   `json:"batch"`   // the first that counts
	Segment record.SegmentID `json:"segment"` // the first side segment that counts
}

// Floor is f as the engine has it.
func (f *Floor) Floor() record.Floor {
	return record.Floor{Spans: f.Ranges.Spans(), Batch: f.Batch, Segment: f.Segment}
}

// Floors are floors as the engine has them.
func Floors(all []Floor) []record.Floor {
	var list []record.Floor
	for i := range all {
		list = append(list, all[i].Floor())
	}
	return list
}

// Spans are the ranges as the engine has them.
func (rs Ranges) Spans() []record.Span {
	spans := make([]record.Span, 0, len(rs))
	for _, r := range rs {
		spans = append(spans, record.Span(r))
	}
	return spans
}
