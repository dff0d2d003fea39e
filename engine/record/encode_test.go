package record

import (
	"bytes"
	"strings"
	"testing"
)

func TestEncodeOverwritesWhatLayThere(t *testing.T) {
	h := Header{Type: TypePut, Kind: KindSet, Table: 2, Version: 3, ExpireAt: 4}
	for n := range 20 {
		value := strings.Repeat("v", n)
		clean := encoded(h, "key", value)
		dirty := bytes.Repeat([]byte{0xff}, len(clean)+8)
		if got := Encode(dirty, &h, []byte("key"), []byte(value), true); got != len(clean) {
			t.Fatalf("wrote %d bytes, want %d", got, len(clean))
		}
		if !bytes.Equal(dirty[:len(clean)], clean) {
			t.Fatalf("value of %d bytes:\n%x, want\n%x", n, dirty[:len(clean)], clean)
		}
		if !bytes.Equal(dirty[len(clean):], bytes.Repeat([]byte{0xff}, 8)) {
			t.Fatalf("value of %d bytes: wrote beyond the entry", n)
		}
	}
}

func TestFinishGivesTheCRCThatEncodeLeftOut(t *testing.T) {
	h := Header{Type: TypePut, Table: 2, Version: 3}
	whole := encoded(h, "key", "value")
	later := make([]byte, len(whole))
	Encode(later, &h, []byte("key"), []byte("value"), false)
	if p := PtrOf(later); p.CRC() != 0 || p.CRCValid() {
		t.Fatalf("CRC %#x before Finish", p.CRC())
	}
	if Finish(PtrOf(later)); !bytes.Equal(later, whole) {
		t.Fatalf("finished\n%x, want\n%x", later, whole)
	}
}

func TestVoidFillsAnyAlignedLength(t *testing.T) {
	for n := 8; n <= 80; n += 8 {
		b := bytes.Repeat([]byte{0xff}, n)
		EncodeVoid(b, n)
		if p := PtrOf(b); p.Type() != TypeVoid || p.Length() != n || keyLen(p.front()) != 0 {
			t.Errorf("void of %d bytes: %x", n, b)
		}
		if _, err := Check(b); err != nil {
			t.Errorf("void of %d bytes: %v", n, err)
		}
	}
}

func TestEncodePanicsOnWhatTheFormatCannotHold(t *testing.T) {
	room := make([]byte, 1<<17)
	for name, act := range map[string]func(){
		"key too long":    func() { Encode(room, &Header{Type: TypePut}, room[:MaxKeyBytes+1], nil, true) },
		"no room":         func() { Encode(room[:24], &Header{Type: TypePut}, []byte("k"), nil, true) },
		"void of nothing": func() { EncodeVoid(room, 0) },
		"void of 12":      func() { EncodeVoid(room, 12) },
		"no room to seal": func() { c := NewChain(1); c.PutSeal(room[:SealBytes-1], 1, false) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("did not panic")
				}
			}()
			act()
		})
	}
}

func TestTheLongestKeyFits(t *testing.T) {
	key := strings.Repeat("k", MaxKeyBytes)
	h := Header{Type: TypePut, Version: 1, ExpireAt: 1}
	checkEntry(t, PtrOf(encoded(h, key, "v")), &h, key, "v")
}

func TestHotPathsAllocateNothing(t *testing.T) {
	b, key, value := make([]byte, 256), []byte("a key of usual length"), []byte("a value")
	chain := NewChain(1)
	h := &Header{Type: TypePut, Version: 1, ExpireAt: 5}
	Encode(b, h, key, value, true)
	found := 0
	for name, act := range map[string]func(){
		"encode": func() { Encode(b, h, key, value, true) },
		"finish": func() { Finish(PtrOf(b)) },
		"chain":  func() { chain.Add(PtrOf(b)) },
		"seal":   func() { chain.PutSeal(b[128:], 1, false) },
		"place":  func() { found += int(PlaceOf(1, key).Slot()) },
		"read":   func() { found += len(PtrOf(b).Key()) + PtrOf(b).ValueLen() },
	} {
		if n := testing.AllocsPerRun(100, act); n != 0 {
			t.Errorf("%s allocates %.0f times", name, n)
		}
	}
	if found == 0 {
		t.Error("the acts found nothing")
	}
}
