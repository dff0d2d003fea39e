package record

import (
	"errors"
	"math/rand/v2"
	"testing"
)

func TestScanReturnsAllThatIsSealed(t *testing.T) {
	b := threeBatches()
	got, err := Scan(b.seg, testID)
	want := Extent{End: b.off, Batches: 3, Entries: 8, Chain: b.chain, Batch: b.batch}
	if err != nil || got != want {
		t.Fatalf("%+v, %v; want %+v", got, err, want)
	}
}

func TestScanOfNothingIsEmpty(t *testing.T) {
	for _, seg := range [][]byte{nil, make([]byte, 7), make([]byte, 4096)} {
		got, err := Scan(seg, testID)
		if want := (Extent{Chain: NewChain(testID)}); err != nil || got != want {
			t.Fatalf("%d zero bytes: %+v, %v", len(seg), got, err)
		}
	}
}

func TestScanStopsAtTheLastSealForEveryByteCut(t *testing.T) {
	cutEverywhere(t, threeBatches())
}

func TestScanStopsAtTheLastSealForEveryByteCutOfRandomBatches(t *testing.T) {
	r := seeded(t)
	cutEverywhere(t, randomBatches(r, 4096, 64))
	cutEverywhere(t, randomBatches(r, 16384, 2000))
}

// cutEverywhere lets b arrive byte by byte in a zeroed buffer.
func cutEverywhere(t *testing.T, b *builder) {
	t.Helper()
	seg := make([]byte, len(b.seg))
	for cut := range b.off + 1 {
		copy(seg, b.seg[:cut])
		got, err := Scan(seg, testID)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if want := b.lastSealBefore(cut); got.End != want {
			t.Fatalf("cut at %d: end %d, want %d", cut, got.End, want)
		}
		if lost := len(trimZeroes(seg[got.End:cut])); got.LostBytes != lost || got.Torn != (lost > 0) {
			t.Fatalf("cut at %d: torn %t, lost %d, want %d", cut, got.Torn, got.LostBytes, lost)
		}
	}
}

func TestScanOfABareFileEndsAsInAZeroedBuffer(t *testing.T) {
	b := threeBatches()
	for cut := range b.off + 1 {
		got, err := Scan(b.seg[:cut], testID)
		if want := b.lastSealBefore(cut); err != nil || got.End != want {
			t.Fatalf("cut at %d: end %d, %v; want %d", cut, got.End, err, want)
		}
	}
}

func TestScanFindsEverySingleBitFlipOfAClosedSegment(t *testing.T) {
	b := threeBatches()
	b.seal(true)
	eachFlip(b, func(bit, entry int) {
		got, err := ScanWith(b.seg, testID, ScanOptions{Closed: true})
		var corrupt *CorruptError
		if !errors.As(err, &corrupt) {
			t.Fatalf("bit %d of byte %d flipped: %+v, error %v", bit%8, bit/8, got, err)
		}
		if corrupt.Segment != testID || corrupt.Offset < entry || got.Closed {
			t.Fatalf("bit %d of byte %d flipped, in the entry at %d: %v", bit%8, bit/8, entry, err)
		}
	})
}

func TestScanStopsBeforeEverySingleBitFlipOfAnOpenSegment(t *testing.T) {
	b := threeBatches()
	eachFlip(b, func(bit, entry int) {
		got, err := Scan(b.seg, testID)
		if err != nil || got.End != b.lastSealBefore(entry) || !got.Torn {
			t.Fatalf("bit %d of byte %d flipped: %+v, %v; want end %d", bit%8, bit/8, got, err, b.lastSealBefore(entry))
		}
		_, err = ScanWith(b.seg, testID, ScanOptions{DurableTo: b.off})
		if !errors.Is(err, ErrCorrupt) {
			t.Fatalf("bit %d of byte %d flipped though durable: error %v", bit%8, bit/8, err)
		}
	})
}

// eachFlip calls see with every bit of b flipped in turn, and the offset of the
// entry that it belongs to. Bits that nothing reads are left out.
func eachFlip(b *builder, see func(bit, entry int)) {
	entryOf := make([]int, b.off)
	for off, p := range Entries(b.seg[:b.off]) {
		for i := range p.Length() {
			entryOf[int(off)+i] = int(off)
		}
	}
	for bit := range 8 * b.off {
		if b.isInert(bit / 8) {
			continue
		}
		b.seg[bit/8] ^= 1 << (bit % 8)
		see(bit, entryOf[bit/8])
		b.seg[bit/8] ^= 1 << (bit % 8)
	}
}

func TestScanEndsBeforeTheFirstMissingPage(t *testing.T) {
	const page = 512
	r := seeded(t)
	for range 200 {
		b := randomBatches(r, 8192, 300)
		seg := append([]byte(nil), b.seg...)
		lost := losePages(r, seg, page)
		got, err := Scan(seg, testID)
		if want := b.lastSealBefore(lost); err != nil || got.End != want {
			t.Fatalf("first lost byte %d: end %d, %v; want %d", lost, got.End, err, want)
		}
		_, err = ScanWith(seg, testID, ScanOptions{DurableTo: b.lastSealBefore(lost)})
		if err != nil {
			t.Fatalf("all that was durable is there: %v", err)
		}
	}
}

// losePages zeroes about a quarter of the pages, and returns the first byte that changed.
func losePages(r *rand.Rand, seg []byte, page int) int {
	first := len(seg)
	for at := 0; at < len(seg); at += page {
		if r.IntN(4) != 0 {
			continue
		}
		for i := at; i < at+page; i++ {
			if seg[i] != 0 {
				first = min(first, i)
			}
		}
		clear(seg[at : at+page])
	}
	return first
}

func TestDamageIsCorruptOnlyBelowWhatWasDurable(t *testing.T) {
	b := threeBatches()
	b.seg[b.ends[1]-20] ^= 1 // In the second batch.
	for _, c := range []struct {
		name    string
		o       ScanOptions
		corrupt bool
	}{
		{"nothing known", ScanOptions{}, false},
		{"durable before it", ScanOptions{DurableTo: b.ends[0]}, false},
		{"durable beyond it", ScanOptions{DurableTo: b.ends[1]}, true},
		{"durable to a byte beyond what is whole", ScanOptions{DurableTo: b.ends[0] + 1}, true},
		{"closed", ScanOptions{Closed: true}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ScanWith(b.seg, testID, c.o)
			if errors.Is(err, ErrCorrupt) != c.corrupt || !c.corrupt && err != nil {
				t.Errorf("error %v", err)
			}
			if got.End != b.ends[0] || !got.Torn || got.LostBytes != b.off-b.ends[0] {
				t.Errorf("%+v, want end %d", got, b.ends[0])
			}
		})
	}
}

func TestAClosedSegmentNeedsItsClosingSeal(t *testing.T) {
	b := threeBatches()
	_, err := ScanWith(b.seg, testID, ScanOptions{Closed: true})
	var corrupt *CorruptError
	if !errors.As(err, &corrupt) || corrupt.Offset != b.off || corrupt.Reason != "ends without a closing seal" {
		t.Fatalf("error %v", err)
	}
	b.seal(true)
	got, err := ScanWith(b.seg, testID, ScanOptions{Closed: true, DurableTo: b.off})
	if err != nil || !got.Closed || got.End != b.off || got.Batches != 4 {
		t.Fatalf("%+v, %v", got, err)
	}
}

func TestAClosingSealEndsTheSegment(t *testing.T) {
	b := threeBatches()
	b.seal(true)
	end := b.off
	b.add(Header{Type: TypePut, Version: 9}, "late", "entry")
	b.seal(false)
	got, err := ScanWith(b.seg, testID, ScanOptions{Closed: true})
	if err != nil || got.End != end || !got.Closed || got.LostBytes != b.off-end {
		t.Fatalf("%+v, %v; want end %d", got, err, end)
	}
	if _, err = ScanWith(b.seg, testID, ScanOptions{DurableTo: b.off}); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("closed before what was durable: error %v", err)
	}
}

func TestBytesOfAnEarlierLifeDoNotVerify(t *testing.T) {
	old := threeBatches()
	if got, err := Scan(old.seg, testID+1); err != nil || got.End != 0 || !got.Torn {
		t.Fatalf("another segment's bytes: %+v, %v", got, err)
	}
	// The new life has written its header, and the rest is still the old one's.
	seg := append([]byte(nil), old.seg...)
	EncodeSegmentHeader(seg, 7, testID+1, 1_700_000_000_000, uint32(len(seg)))
	if got, err := Scan(seg, testID+1); err != nil || got.End != 0 || !got.Torn {
		t.Fatalf("old bytes behind a new header: %+v, %v", got, err)
	}
}

func TestASegmentHeaderNamesItsSegmentTwice(t *testing.T) {
	for name, at := range map[string]int{"version": versionOffset, "payload": HeaderBytes + 8} {
		b := startSegment(256)
		b.seg[at]++
		Finish(PtrOf(b.seg))
		b.chain = NewChain(testID)
		b.chain.Add(PtrOf(b.seg))
		b.seal(false)
		if got, err := Scan(b.seg, testID); err != nil || got.End != 0 {
			t.Errorf("another id in the %s: %+v, %v", name, got, err)
		}
	}
}

func TestAppendingGoesOnFromAnExtent(t *testing.T) {
	b := threeBatches()
	ext, err := Scan(b.seg, testID)
	if err != nil {
		t.Fatal(err)
	}
	again := &builder{seg: b.seg, off: ext.End, chain: ext.Chain}
	again.add(Header{Type: TypePut, Version: 5}, "more", "bytes")
	again.seal(true)
	got, err := ScanWith(b.seg, testID, ScanOptions{Closed: true})
	if err != nil || got.End != again.off || got.Entries != ext.Entries+1 || got.Chain.Sum() != again.chain.Sum() {
		t.Fatalf("%+v, %v; want end %d", got, err, again.off)
	}
}

func TestAScanMayEndBeforeAnyBatch(t *testing.T) {
	b := threeBatches()
	for n := range BatchID(4) {
		got, err := ScanWith(b.seg, testID, ScanOptions{Only: func(batch BatchID) bool { return batch < testBatch+n }})
		want, last := 0, BatchID(0)
		if n > 0 {
			want, last = b.ends[n-1], testBatch+n-1
		}
		if err != nil || got.End != want || got.Batch != last || got.Torn != (n < 3) {
			t.Fatalf("%d batches: %+v, %v; want end %d", n, got, err, want)
		}
	}
}

func TestAPrefixEndsBeforeTheFirstBatchThatIsMissing(t *testing.T) {
	for _, c := range []struct {
		name string
		safe BatchID
		seen []BatchID
		want BatchID
	}{
		{"nothing", 0, nil, 0},
		{"the first is missing", 0, []BatchID{2, 3}, 0},
		{"none is missing, in any order", 0, []BatchID{3, 1, 2}, 3},
		{"one is missing", 0, []BatchID{5, 1, 2, 4}, 2},
		{"what is safe need not be seen", 7, []BatchID{8, 9}, 9},
		{"what is safe may be seen", 7, []BatchID{5, 6, 7, 8}, 8},
		{"some of what is safe is gone", 7, []BatchID{2, 5, 8, 10}, 8},
		{"seen twice", 1, []BatchID{2, 2, 3, 3, 5}, 3},
		{"all of it is safe", 7, []BatchID{1, 2}, 7},
		{"the number runs over", 1<<64 - 1, []BatchID{1}, 1<<64 - 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Prefix(c.safe, c.seen); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}

func TestAPlaceForASealIsTouchedWithoutATrace(t *testing.T) {
	b := make([]byte, SealBytes)
	TouchSeal(b)
	if len(trimZeroes(b)) != 0 {
		t.Fatalf("%x", b)
	}
}

func TestScanRefusesWhatNoAppenderWrites(t *testing.T) {
	for _, c := range []struct {
		name  string
		write func(b *builder)
	}{
		{"second segment header", func(b *builder) {
			b.took(EncodeSegmentHeader(b.seg[b.off:], 7, testID, 0, 1024))
		}},
		{"locked version", func(b *builder) { b.add(Header{Type: TypePut, Version: 1 | VersionLock}, "k", "v") }},
		{"unknown type", func(b *builder) { b.add(Header{Type: 11}, "k", "v") }},
		{"unknown kind", func(b *builder) { b.add(Header{Type: TypePut, Kind: 6}, "k", "v") }},
		{"never written", func(b *builder) { b.add(Header{Type: TypeNone, Kind: KindSet}, "k", "v") }},
		{"unfinished", func(b *builder) {
			b.took(Encode(b.seg[b.off:], &Header{Type: TypePut, Version: 1}, []byte("k"), []byte("v"), false))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := threeBatches()
			end := b.off
			c.write(b)
			b.seal(false)
			if got, err := Scan(b.seg, testID); err != nil || got.End != end || !got.Torn {
				t.Errorf("%+v, %v; want end %d", got, err, end)
			}
		})
	}
}

func TestScanStaysWithinTheSizeThatTheSegmentClaims(t *testing.T) {
	b := threeBatches()
	small := &builder{seg: make([]byte, 4096), chain: NewChain(testID)}
	small.took(EncodeSegmentHeader(small.seg, 7, testID, 0, 128))
	small.seal(false)
	end := small.off
	small.add(Header{Type: TypePut, Version: 1}, "key", string(make([]byte, 200)))
	small.seal(false)
	if got, err := Scan(small.seg, testID); err != nil || got.End != end {
		t.Errorf("%+v, %v; want end %d", got, err, end)
	}
	for _, size := range []uint32{0, SegmentHeaderBytes - 1, MaxSegmentBytes + 1} {
		EncodeSegmentHeader(b.seg, 7, testID, 0, size)
		if got, err := Scan(b.seg, testID); err != nil || got.End != 0 {
			t.Errorf("size %d: %+v, %v", size, got, err)
		}
	}
}

func TestSkipCRCTrustsPayloadsButNotHeaders(t *testing.T) {
	b := threeBatches()
	skip := ScanOptions{SkipCRC: true}
	payload := b.ends[0] + HeaderBytes
	b.seg[payload] ^= 1
	if got, err := ScanWith(b.seg, testID, skip); err != nil || got.End != b.off {
		t.Errorf("payload flipped: %+v, %v", got, err)
	}
	b.seg[b.ends[0]+versionOffset] ^= 1
	if got, err := ScanWith(b.seg, testID, skip); err != nil || got.End != b.ends[0] {
		t.Errorf("header flipped: %+v, %v", got, err)
	}
}

func TestEntriesWalksEntriesAndSeals(t *testing.T) {
	b := threeBatches()
	var types []Type
	next := uint32(0)
	for off, p := range Entries(b.seg) {
		if off != next {
			t.Fatalf("entry at %d, want %d", off, next)
		}
		types = append(types, p.Type())
		next += uint32(p.Length())
	}
	want := []Type{
		TypeSegmentHeader, TypeSeal, TypePut, TypePut, TypeSeal,
		TypeVoid, TypeVoid, TypeTombstone, TypeVoid, TypePut, TypeSeal,
	}
	if len(types) != len(want) || int(next) != b.off {
		t.Fatalf("types %v up to %d, want %v up to %d", types, next, want, b.off)
	}
	for i := range want {
		if types[i] != want[i] {
			t.Fatalf("types %v, want %v", types, want)
		}
	}
	for range Entries(b.seg) {
		break // A walk may end early.
	}
}

func TestTrimZeroesLeavesTheLastByteThatWasWritten(t *testing.T) {
	for _, size := range []int{0, 1, 4095, 4096, 4097, 20000} {
		for _, last := range []int{-1, 0, 1, size / 2, size - 1} {
			b := make([]byte, size)
			if last >= size {
				continue
			}
			if last >= 0 {
				b[last] = 1
			}
			if got := len(trimZeroes(b)); got != max(last, -1)+1 {
				t.Errorf("size %d, last %d: %d left", size, last, got)
			}
		}
	}
}

func TestAScanThatPausesFindsTheSame(t *testing.T) {
	b := randomBatches(seeded(t), 4*pieceBytes, 2000)
	want, err := ScanWith(b.seg, testID, ScanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pauses := 0
	got, err := ScanWith(b.seg, testID, ScanOptions{Between: func() { pauses++ }})
	if err != nil || got != want {
		t.Fatalf("%+v, %v; want %+v", got, err, want)
	}
	if most := want.End / pieceBytes; pauses < most/2 || pauses > most {
		t.Errorf("%d pauses in %d bytes", pauses, want.End)
	}
}
