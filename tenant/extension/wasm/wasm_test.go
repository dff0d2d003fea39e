package wasm

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"testing"
)

func guests(tb testing.TB) map[string][]byte {
	tb.Helper()
	all := map[string][]byte{}
	for _, pattern := range []string{"../testdata/*.wasm", "../meter/testdata/*.wasm"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			tb.Fatal(err)
		}
		for _, p := range paths {
			b, err := os.ReadFile(p)
			if err != nil {
				tb.Fatal(err)
			}
			all[p] = b
		}
	}
	if len(all) < 3 {
		tb.Fatalf("only %d guests", len(all))
	}
	return all
}

// reencode decodes a module with all its code, and writes it anew.
func reencode(b []byte) ([]byte, error) {
	m, err := Decode(b)
	if err != nil {
		return nil, err
	}
	bodies := make([][]byte, len(m.Code))
	for own := range m.Code {
		body := m.Body(own)
		var in Instr
		for body.Next(&in) {
			bodies[own] = in.Append(bodies[own])
		}
		if err := body.Err(); err != nil {
			return nil, err
		}
	}
	for own := range m.Code {
		m.Code[own].Body = bodies[own]
	}
	return m.Encode(), nil
}

// What is written is not always what was read: compilers pad numbers. Written once more it is the same.
func TestWhatIsEncodedDecodesToTheSame(t *testing.T) {
	for name, b := range guests(t) {
		once, err := reencode(b)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		twice, err := reencode(once)
		if err != nil || !bytes.Equal(once, twice) {
			t.Errorf("%s changes when it is written again: %v", name, err)
		}
		if len(once) > len(b) || len(once) < len(b)*8/10 {
			t.Errorf("%s: %d bytes became %d", name, len(b), len(once))
		}
	}
}

func TestNumbersComeBack(t *testing.T) {
	for _, v := range []int64{0, 1, -1, 63, 64, -64, -65, 127, 128, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64} {
		r := &reader{b: AppendInt(nil, v)}
		if got := r.signed(64); got != v || r.err != nil || r.left() != 0 {
			t.Errorf("%d became %d, %v", v, got, r.err)
		}
		r = &reader{b: AppendInt(nil, v)}
		if got := r.signed(32); int64(int32(v)) == v && (got != v || r.err != nil) || int64(int32(v)) != v && r.err == nil {
			t.Errorf("as 32 bits %d became %d, %v", v, got, r.err)
		}
	}
	for _, v := range []uint64{0, 127, 128, math.MaxUint32} {
		r := &reader{b: AppendUint(nil, v)}
		if got := r.u32(); uint64(got) != v || r.err != nil {
			t.Errorf("%d became %d, %v", v, got, r.err)
		}
	}
}

func TestNumbersOfTooManyBitsAreRefused(t *testing.T) {
	for _, b := range [][]byte{{0x80, 0x80, 0x80, 0x80, 0x10}, {0x80, 0x80, 0x80, 0x80, 0x80, 0}, {0xff}} {
		r := &reader{b: b}
		if r.u32(); r.err == nil {
			t.Errorf("%x was taken", b)
		}
	}
	for _, b := range [][]byte{{0x80, 0x80, 0x80, 0x80, 0x08}, {0xff, 0xff, 0xff, 0xff, 0x77}, {0x80, 0x80, 0x80, 0x80, 0x80, 0}} {
		r := &reader{b: b}
		if r.signed(32); r.err == nil {
			t.Errorf("%x was taken", b)
		}
	}
}

// FuzzDecode must not panic, nor allocate for what is only announced.
func FuzzDecode(f *testing.F) {
	for _, b := range guests(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		once, err := reencode(b)
		if err != nil {
			return
		}
		if twice, err := reencode(once); err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("changes when it is written again: %v", err)
		}
	})
}
