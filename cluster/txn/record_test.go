package txn

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
)

var someLayout = layout{locks: 3, logBytes: 1024, memory: 16384, group: 0x1122334455667788}

// golden is hex with spaces and remarks left out.
func golden(t *testing.T, text string) []byte {
	t.Helper()
	var digits strings.Builder
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		digits.WriteString(strings.Join(strings.Fields(line), ""))
	}
	b, err := hex.DecodeString(digits.String())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTheBytesOfAHeaderAreFixed(t *testing.T) {
	want := golden(t, `
		01000000 03000000   # version, locks
		0004000000000000    # bytes of the log
		0040000000000000    # bytes of the memory
		8877665544332211    # group
		0000000000000000 0000000000000000 00000000
		3840a222            # CRC-32C
	`)
	if got := someLayout.header(); !bytes.Equal(got, want) {
		t.Fatalf("the header is\n%x, not\n%x", got, want)
	}
	memory := append([]byte("STROTXN1"), want...)
	l, formatted, err := parse(memory)
	if err != nil || !formatted || l != someLayout {
		t.Fatalf("it is read as %+v, %v, %v", l, formatted, err)
	}
	for at, want := range map[uint64]uint64{l.lock(0): 128, l.lock(2): 144, l.log(): 192, l.data(): 4096, l.dataBytes(): 12288} {
		if at != want {
			t.Errorf("something lies at %d, not at %d", at, want)
		}
	}
	for i := range 8 * len(memory) {
		broken := bytes.Clone(memory)
		broken[i/8] ^= 1 << (i % 8)
		if _, formatted, err := parse(broken); err == nil && formatted {
			t.Fatalf("a header is accepted though bit %d is another", i)
		}
	}
}

func TestTheBytesOfARecordAreFixed(t *testing.T) {
	got, moves := encode(0x1000, 0x5_00000009, []Entry{{100, []byte("abc")}, {103, []byte("defg")}, {50, nil}, {7, []byte("h")}})
	want := golden(t, `
		95f4de57                            # CRC-32C
		04000000                            # entries
		0010000000000000 0900000005000000   # position, epoch
		6800000000000000                    # bytes
		6400000000000000 0300000000000000   # offset, bytes
		6700000000000000 0400000000000000
		3200000000000000 0000000000000000
		0700000000000000 0100000000000000
		6162636465666768`)
	if !bytes.Equal(got, want) {
		t.Fatalf("the record is\n%x, not\n%x", got, want)
	}
	if len(moves) != 2 || moves[0] != (move{100, 0x1060, 7}) || moves[1] != (move{7, 0x1067, 1}) {
		t.Fatalf("it means %v", moves)
	}
	epoch, again, ok := decode(got, 0x1000, someLayout)
	if !ok || epoch != 0x5_00000009 || len(again) != 2 || again[0] != moves[0] || again[1] != moves[1] {
		t.Fatalf("it is read as %v of epoch %x, %v", again, epoch, ok)
	}
}

func TestARecordCutAnywhereIsNone(t *testing.T) {
	whole, _ := encode(2048, 1<<32, []Entry{{0, bytes.Repeat([]byte{7}, 100)}})
	before, _ := encode(1024, 1<<32, []Entry{{0, bytes.Repeat([]byte{7}, 100)}}) // of the lap before, at the same place
	for _, old := range [][]byte{make([]byte, len(whole)), before} {
		for cut := range len(whole) {
			torn := append(bytes.Clone(whole[:cut]), old[cut:]...)
			if _, _, ok := decode(torn, 2048, someLayout); ok && !bytes.Equal(torn, whole) {
				t.Fatalf("a record cut at %d is accepted", cut)
			}
		}
	}
}

func TestARecordWithAnotherBitIsNone(t *testing.T) {
	whole, _ := encode(2048, 1<<32, []Entry{{0, []byte("some data")}, {50, []byte("more")}})
	for i := range 8 * len(whole) {
		broken := bytes.Clone(whole)
		broken[i/8] ^= 1 << (i % 8)
		if _, _, ok := decode(broken, 2048, someLayout); ok {
			t.Fatalf("a record is accepted though bit %d is another", i)
		}
	}
}

func FuzzAnyBytesAreARecordOrNone(f *testing.F) {
	whole, _ := encode(2048, 1<<32, []Entry{{0, []byte("some data")}, {50, []byte("more")}})
	f.Add(whole)
	f.Add(make([]byte, 64))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < recordBytes {
			return
		}
		_, moves, ok := decode(b, 2048, someLayout)
		for _, m := range moves {
			if ok && (m.to+m.n > someLayout.dataBytes() || m.from < 2048 || m.from+m.n > 2048+uint64(len(b))) {
				t.Fatalf("a record means %v", m)
			}
		}
	})
}

func TestTheRingHasEveryByteOnce(t *testing.T) {
	l := someLayout
	for pos := uint64(0); pos < 3*l.logBytes; pos += 8 {
		for n := uint64(8); n <= l.logBytes; n += 40 {
			at := pos
			for _, s := range l.ring(pos, n) {
				for i := range s.n {
					if s.off+i != l.log()+at%l.logBytes {
						t.Fatalf("byte %d of the log lies at %d", at, s.off+i)
					}
					at++
				}
			}
			if at != pos+n {
				t.Fatalf("%d bytes from %d on are %d", n, pos, at-pos)
			}
		}
	}
}
