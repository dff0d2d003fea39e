package record

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
)

// spoilers make an entry of 48 bytes with an expiry, "key" and "values" senseless,
// each in its own way.
var spoilers = []struct {
	reason string
	spoil  func(b []byte) []byte
}{
	{"no room", func(b []byte) []byte { return b[:7] }},
	{"outside its segment", func(b []byte) []byte { return b[:40] }},
	{"outside its segment", func(b []byte) []byte { b[7] = 0xff; return b }},
	{"length that no entry has", func(b []byte) []byte { b[4] = 0; return b }},
	{"length that no entry has", func(b []byte) []byte { b[4] = 44; return b }},
	{"unknown type", func(b []byte) []byte { b[0] = 0; return b }},
	{"unknown type", func(b []byte) []byte { b[0] = 10; return b }},
	{"unknown kind", func(b []byte) []byte { b[0] |= 6 << 4; return b }},
	{"unknown flags", func(b []byte) []byte { b[1] |= 0x40; return b }},
	{"unknown flags", func(b []byte) []byte { b[1] |= 0x80; return b }},
	{"does not fit", func(b []byte) []byte { b[2] = 10; return b }},
	{"does not fit", func(b []byte) []byte { b[4] = 24; return b }},
	{"does not fit", func(b []byte) []byte { b[4] = 8; return b }},
	{"does not fit", func(b []byte) []byte { b[1] |= flagClient; return b }},
	{"locked", func(b []byte) []byte { b[15] |= 0x80; return b }},
	{"CRC", func(b []byte) []byte { b[20]++; return b }},
	{"CRC", func(b []byte) []byte { b[47]++; return b }},
	{"void with", func(b []byte) []byte { b[0] = byte(TypeVoid); return b }},
	{"never written", func(b []byte) []byte { b[0] = byte(TypeSeal); return b }},
	{"a seal", func(b []byte) []byte { binary.LittleEndian.PutUint64(b, sealFront(true)); return b }},
}

func TestCheckRefusesEntriesThatMakeNoSense(t *testing.T) {
	for _, c := range spoilers {
		b := encoded(Header{Type: TypePut, Version: 1, ExpireAt: 1}, "key", "values")
		if _, err := Check(b); err != nil {
			t.Fatalf("the whole entry: %v", err)
		}
		if _, err := Check(c.spoil(b)); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%q: error %v", c.reason, err)
		}
	}
}

func TestCheckIgnoresWhatFollowsTheEntry(t *testing.T) {
	b := append(encoded(Header{Type: TypePut, Version: 1}, "key", "value"), 0xff, 0xff)
	if p, err := Check(b); err != nil || string(p.Value()) != "value" {
		t.Fatal(err)
	}
}
