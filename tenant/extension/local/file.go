package local

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/ostrodb/ostro/tenant/extension"
)

// line is a key in a data file: one JSON object on a line of its own.
//
//	{"key": "user:7", "value": "Ada"}
//	{"key": "n", "value_b64": "AQAAAA==", "ttl_ms": 60000, "table": 1}
//
// Bytes that are no text are base64 in key_b64 and value_b64. Empty lines and lines that begin with # are passed over.
type line struct {
	Table uint32  `json:"table,omitempty"`
	Key   *string `json:"key,omitempty"`
	Key64 []byte  `json:"key_b64,omitempty"`
	Value *string `json:"value,omitempty"`
	Val64 []byte  `json:"value_b64,omitempty"`
	TTL   int64   `json:"ttl_ms,omitempty"`
}

const lineMost = 64 << 20

// Load adds the keys of a data file.
func (s *Store) Load(r io.Reader) error {
	in := bufio.NewScanner(r)
	in.Buffer(nil, lineMost)
	for n := 1; in.Scan(); n++ {
		b := bytes.TrimSpace(in.Bytes())
		if len(b) == 0 || b[0] == '#' {
			continue
		}
		if err := s.loadLine(b); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return in.Err()
}

func (s *Store) loadLine(b []byte) error {
	var l line
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return err
	}
	if d.More() {
		return fmt.Errorf("more than one object")
	}
	w := extension.Write{Table: l.Table, Key: l.Key64, Value: l.Val64, TTL: time.Duration(l.TTL) * time.Millisecond}
	if l.Key != nil {
		w.Key = []byte(*l.Key)
	}
	if l.Value != nil {
		w.Value = []byte(*l.Value)
	}
	if l.Key == nil && l.Key64 == nil {
		return fmt.Errorf(`no "key" and no "key_b64"`)
	}
	if l.Value == nil && l.Val64 == nil {
		return fmt.Errorf(`no "value" and no "value_b64"`)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.apply(w)
	return nil
}

// Save writes all keys, in order.
func (s *Store) Save(w io.Writer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for _, n := range s.names() {
		r := s.records[n]
		l := line{Table: n.table}
		l.Key, l.Key64 = textOr64([]byte(n.key))
		l.Value, l.Val64 = textOr64(r.value)
		if !r.expires.IsZero() {
			l.TTL = max(1, r.expires.Sub(s.now()).Milliseconds())
		}
		if err := enc.Encode(l); err != nil {
			return err
		}
	}
	return out.Flush()
}

func textOr64(b []byte) (*string, []byte) {
	if utf8.Valid(b) {
		text := string(b)
		return &text, nil
	}
	return nil, b
}
