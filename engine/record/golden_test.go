package record

import (
	"bytes"
	"encoding/hex"
	"os"
	"strings"
	"testing"
)

// golden returns the bytes of a file of hex lines with comments.
func golden(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var b []byte
	for line := range strings.Lines(string(text)) {
		digits, _, _ := strings.Cut(line, "#")
		if b, err = hex.AppendDecode(b, []byte(strings.TrimSpace(digits))); err != nil {
			t.Fatalf("%s: %q: %v", path, line, err)
		}
	}
	return b
}

func TestSegmentBytesAreThoseOfTheFormat(t *testing.T) {
	want := golden(t, "testdata/segment.hex")
	b := threeBatches()
	b.seal(true)
	got := b.seg[:b.off]
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("byte %d is %#02x, want %#02x\n%s", i, got[i], want[i], hex.Dump(got))
		}
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("%d bytes, want %d", len(got), len(want))
	}
}

func TestScanReadsTheBytesOfTheFormat(t *testing.T) {
	want := golden(t, "testdata/segment.hex")
	got, err := ScanWith(want, testID, ScanOptions{Closed: true, DurableTo: len(want)})
	if err != nil || got.End != len(want) || got.Batches != 4 || got.Entries != 8 {
		t.Fatalf("%+v, %v", got, err)
	}
}
