package record

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
)

func TestSegmentHeaderReadsBack(t *testing.T) {
	b := make([]byte, SegmentHeaderBytes)
	if n := EncodeSegmentHeader(b, 5, 6, 7, 8<<20); n != SegmentHeaderBytes {
		t.Fatalf("wrote %d bytes", n)
	}
	got, err := DecodeSegmentHeader(b)
	if want := (SegmentInfo{Log: 5, ID: 6, CreatedMillis: 7, SegmentBytes: 8 << 20}); err != nil || got != want {
		t.Fatalf("%+v, %v; want %+v", got, err, want)
	}
	if p := PtrOf(b); p.Version() != 6 || p.Type() != TypeSegmentHeader || !p.CRCValid() {
		t.Fatalf("entry of type %v, version %d", p.Type(), p.Version())
	}
}

func TestSegmentHeaderIsRefusedUnlessWhole(t *testing.T) {
	for name, spoil := range map[string]func([]byte) []byte{
		"short":   func(b []byte) []byte { return b[:SegmentHeaderBytes-1] },
		"zero":    func(b []byte) []byte { clear(b); return b },
		"a put":   func(b []byte) []byte { b[0] = byte(TypePut); return b },
		"flipped": func(b []byte) []byte { b[30] ^= 1; return b },
		"nothing": func([]byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			b := make([]byte, SegmentHeaderBytes)
			EncodeSegmentHeader(b, 5, 6, 7, 4096)
			if _, err := DecodeSegmentHeader(spoil(b)); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("error %v, want corrupt", err)
			}
		})
	}
}

// ofFormat returns a segment as a version of Ostro writes that is not ours.
func ofFormat(format uint32) []byte {
	b := startSegment(256)
	binary.LittleEndian.PutUint32(b.seg[HeaderBytes+24:], format)
	Finish(PtrOf(b.seg))
	b.chain = NewChain(testID)
	b.chain.Add(PtrOf(b.seg))
	b.seal(true)
	return b.seg
}

func TestAnotherFormatIsNeverTakenForATornSegment(t *testing.T) {
	for _, format := range []uint32{0, FormatVersion + 1} {
		seg := ofFormat(format)
		_, err := DecodeSegmentHeader(seg)
		if !errors.Is(err, ErrFormat) || errors.Is(err, ErrCorrupt) {
			t.Errorf("decode: %v", err)
		}
		if ext, err := Scan(seg, testID); !errors.Is(err, ErrFormat) || ext.End != 0 {
			t.Errorf("scan: %+v, %v", ext, err)
		}
	}
}

func TestCorruptErrorTellsTheOperatorWhere(t *testing.T) {
	var err error = &CorruptError{Segment: 12, Offset: 340, Reason: "unknown type"}
	if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "segment 12 is corrupt at byte 340: unknown type") {
		t.Fatal(err)
	}
}
