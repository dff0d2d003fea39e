package view

import (
	"encoding/json"
	"fmt"
)

// format numbers the encoding, so that a node meets a newer one with a clear word.
const format = 1

type encoded struct {
	Format int               `json:"format"`
	Spans  []Span            `json:"spans"`
	Views  map[NodeID]ViewID `json:"views"`
}

// MarshalJSON writes the map as etcd keeps it: equal maps give equal bytes.
func (m Map) MarshalJSON() ([]byte, error) {
	return json.Marshal(encoded{format, m.spans, m.views})
}

// UnmarshalJSON reads a map and validates it.
func (m *Map) UnmarshalJSON(text []byte) error {
	var e encoded
	if err := json.Unmarshal(text, &e); err != nil {
		return fmt.Errorf("read the map: %w", err)
	}
	if e.Format != format {
		return fmt.Errorf("read the map: it has format %d and this program knows %d: update the older side", e.Format, format)
	}
	read := Map{e.Spans, e.Views}
	if err := Validate(Map{}, read); err != nil {
		return fmt.Errorf("read the map: %w", err)
	}
	*m = read
	return nil
}
