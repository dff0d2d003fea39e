package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
)

// FuzzScan feeds bytes as they are: nearly all of them are torn or corrupt.
func FuzzScan(f *testing.F) {
	seedSegments(f, func(seg []byte) { f.Add(seg, uint64(testID), 0, false, false) })
	f.Fuzz(func(t *testing.T, b []byte, id uint64, durableTo int, closed, skipCRC bool) {
		checkScan(t, b, SegmentID(id), ScanOptions{Closed: closed, DurableTo: durableTo, SkipCRC: skipCRC})
	})
}

// FuzzScanOfMendedSegments makes all checksums right first, so that what the
// fuzzer did to lengths, types and flags is what counts.
func FuzzScanOfMendedSegments(f *testing.F) {
	seedSegments(f, func(seg []byte) { f.Add(seg) })
	f.Fuzz(func(t *testing.T, b []byte) {
		b = bytes.Clone(b)
		mended := mend(b)
		ext := checkScan(t, b, testID, ScanOptions{})
		if ext.End < mended {
			t.Fatalf("end %d, but all is right up to %d", ext.End, mended)
		}
	})
}

func seedSegments(f *testing.F, add func(seg []byte)) {
	b := threeBatches()
	b.seal(true)
	add(b.seg[:b.off])
	add(b.seg[:b.off-1])
	add(b.seg)
	add(golden(f, "testdata/segment.hex"))
	add(ofFormat(2))
	add(nil)
}

// checkScan scans b in memory that ends where b ends, and checks what must hold
// for any bytes.
func checkScan(t *testing.T, b []byte, id SegmentID, o ScanOptions) Extent {
	t.Helper()
	b = atTheEndOfMemory(t, b)
	ext, err := ScanWith(b, id, o)
	if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrFormat) {
		t.Fatalf("error of no known kind: %v", err)
	}
	if err == nil && (o.Closed && !ext.Closed || ext.End < o.DurableTo) {
		t.Fatalf("%+v accepted under %+v", ext, o)
	}
	if ext.End < 0 || ext.End > len(b) || ext.End%8 != 0 || ext.LostBytes > len(b)-ext.End {
		t.Fatalf("%+v of %d bytes", ext, len(b))
	}
	checkPrefix(t, b[:ext.End], id, ext, o)
	return ext
}

// checkPrefix scans what a scan accepted once more, and reads all of it.
func checkPrefix(t *testing.T, b []byte, id SegmentID, ext Extent, o ScanOptions) {
	t.Helper()
	again, err := ScanWith(b, id, ScanOptions{DurableTo: ext.End, SkipCRC: o.SkipCRC})
	ext.Torn, ext.LostBytes = false, 0
	if ext.End > 0 && err != nil || again != ext {
		t.Fatalf("scanned again: %+v, %v; want %+v", again, err, ext)
	}
	entries, seals, end := 0, 0, 0
	for off, p := range Entries(b) {
		end = int(off) + p.Length()
		if p.Type() == TypeSeal {
			seals++
			continue
		}
		entries++
		if p.Type() != TypeVoid {
			readAll(t, p, !o.SkipCRC)
		}
	}
	if entries != ext.Entries || seals != ext.Batches || end != ext.End {
		t.Fatalf("%d entries and %d seals up to %d, scan has %+v", entries, seals, end, ext)
	}
}

// readAll touches every byte that the accessors lead to.
func readAll(t *testing.T, p Ptr, checked bool) {
	t.Helper()
	if len(p.Key())+len(p.Value()) > p.Length()-HeaderBytes || len(p.Value()) != p.ValueLen() {
		t.Fatalf("key of %d and value of %d bytes in an entry of %d", len(p.Key()), len(p.Value()), p.Length())
	}
	if !p.KeyIs(p.Table(), append([]byte(nil), p.Key()...)) {
		t.Fatal("an entry is not of its own key")
	}
	_ = append([]byte(nil), p.Value()...)
	if checked && !p.CRCValid() {
		t.Fatal("accepted with a wrong CRC")
	}
	if p.HasExpiry() && p.ExpireAt() != int64(binary.LittleEndian.Uint64(p.Bytes()[HeaderBytes:])) {
		t.Fatal("expiry read from elsewhere")
	}
}

// mend makes b a segment of testID as far as its lengths, types and flags
// allow, and returns where the last seal ends that it could make right.
func mend(b []byte) (end int) {
	if len(b) < SegmentHeaderBytes {
		return 0
	}
	EncodeSegmentHeader(b, 1, testID, 0, MaxSegmentBytes)
	chain := NewChain(testID)
	chain.Add(PtrOf(b))
	for off := SegmentHeaderBytes; off < len(b); {
		n, reason := checkHeader(b[off:])
		p := PtrOf(b[off:])
		if reason != "" || p.Type() == TypeSegmentHeader {
			return end
		}
		off += n
		if p.Type() != TypeSeal {
			if p.Type() != TypeVoid {
				Finish(p)
			}
			chain.Add(p)
			continue
		}
		closed := p.Flags() == sealClosed
		if chain.PutSeal(b[off-n:], p.Batch(), closed); closed {
			return off
		}
		end = off
	}
	return end
}

// plainBytes is what FitsPlain says of an entry that fits.
func plainBytes(p Ptr, table TableID) int {
	if p.Type() != TypePut || p.HasExpiry() || p.Chunked() || p.Flags()&flagClient != 0 || p.Table() != table {
		return 0
	}
	return p.Length()
}

// FuzzFits walks over bytes that may be no entries.
func FuzzFits(f *testing.F) {
	seedSegments(f, func(seg []byte) { f.Add(seg) })
	f.Fuzz(func(t *testing.T, b []byte) {
		for b = b[:len(b):len(b)]; Fits(b); {
			p := PtrOf(b)
			n := p.Length()
			if n <= 0 || n%alignment != 0 || n > len(b) {
				t.Fatalf("an entry of %d bytes fits %d", n, len(b))
			}
			if typ := p.Type(); typ != TypeVoid && typ != TypeSeal && HeaderBytes+len(p.Key())+len(p.Value()) > n {
				t.Fatal("the key and the value do not fit their entry")
			}
			if got, want := FitsPlain(b, 0), plainBytes(p, 0); got != want {
				t.Fatalf("a plain entry of %d bytes has %d: %x", want, got, b[:HeaderBytes])
			}
			b = b[n:]
		}
		if n := FitsPlain(b, 0); n != 0 {
			t.Fatalf("what does not fit is a plain entry of %d bytes", n)
		}
		if _, err := Check(b); err == nil {
			t.Fatal("an entry that is whole does not fit")
		}
	})
}

func FuzzEncodeReadsBack(f *testing.F) {
	f.Add(uint8(1), uint8(0), false, uint32(1), uint64(1), int64(0), "key", "value")
	f.Add(uint8(2), uint8(5), true, uint32(1<<31), uint64(1<<63-1), int64(-1), "", "")
	f.Fuzz(func(t *testing.T, typ, kind uint8, chunked bool, table uint32, version uint64, expireAt int64, key, value string) {
		h := Header{Type(typ % 16), Kind(kind % 6), chunked, TableID(table), version &^ VersionLock, expireAt}
		switch h.Type {
		case TypePut, TypeTombstone, TypeTable, TypeIndirection, TypeCommit, TypeCompletion:
		default:
			h.Type = TypePut
		}
		key = key[:min(len(key), MaxKeyBytes)]
		b := encoded(h, key, value)
		p, err := Check(b)
		if err != nil {
			t.Fatal(err)
		}
		checkEntry(t, p, &h, key, value)
		if !p.KeyIs(h.Table, []byte(key)) || p.KeyIs(h.Table+1, []byte(key)) || p.KeyIs(h.Table, []byte(key+"x")) {
			t.Fatal("entry is not of its key, or of others too")
		}
		for i := p.Length() - int(p.Flags()&flagPadMask); i < len(b); i++ {
			if b[i] != 0 {
				t.Fatalf("pad byte %d is %#x", i, b[i])
			}
		}
	})
}
