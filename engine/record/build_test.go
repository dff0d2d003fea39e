package record

import (
	"math/rand/v2"
	"testing"
)

// builder writes a segment as an appender does, and notes where its seals end.
type builder struct {
	seg   []byte // Zeroed, of full size.
	off   int
	chain Chain
	ends  []int    // After each seal.
	batch BatchID  // Of the last seal.
	inert [][2]int // Bytes that no reader looks at: what lies in voids.
}

const (
	testID    SegmentID = 0x1122334455
	testBatch BatchID   = 0x010203040506 // of a segment's first seal
)

// startSegment returns a segment with its header, not sealed yet.
func startSegment(segmentBytes int) *builder {
	b := &builder{seg: make([]byte, segmentBytes), chain: NewChain(testID), batch: testBatch - 1}
	b.took(EncodeSegmentHeader(b.seg, 7, testID, 1_700_000_000_000, uint32(segmentBytes)))
	return b
}

func (b *builder) took(n int) {
	b.chain.Add(PtrOf(b.seg[b.off:]))
	b.off += n
}

func (b *builder) add(h Header, key, value string) {
	b.took(Encode(b.seg[b.off:], &h, []byte(key), []byte(value), true))
}

func (b *builder) void(n int) {
	EncodeVoid(b.seg[b.off:], n)
	b.inert = append(b.inert, [2]int{b.off + voidHead(n), b.off + n})
	b.took(n)
}

// voidHead returns how many bytes of a void the chain covers.
func voidHead(n int) int {
	if n < HeaderBytes {
		return 8
	}
	return HeaderBytes
}

func (b *builder) seal(closed bool) {
	b.batch++
	b.chain.PutSeal(b.seg[b.off:], b.batch, closed)
	b.off += SealBytes
	b.ends = append(b.ends, b.off)
}

func (b *builder) room() int { return len(b.seg) - b.off - SealBytes }

// lastSealBefore returns where the last seal ends of which all bytes lie before cut.
func (b *builder) lastSealBefore(cut int) int {
	last := 0
	for _, end := range b.ends {
		if end <= cut {
			last = end
		}
	}
	return last
}

func (b *builder) isInert(off int) bool {
	for _, r := range b.inert {
		if off >= r[0] && off < r[1] {
			return true
		}
	}
	return false
}

// threeBatches has every kind of entry, and values that end in zeroes.
func threeBatches() *builder {
	b := startSegment(1024)
	b.seal(false)
	b.add(Header{Type: TypePut, Table: 3, Version: 1}, "alpha", "one")
	b.add(Header{Type: TypePut, Kind: KindHash, Table: 3, Version: 2, ExpireAt: 1_800_000_000_000}, "beta", "\x00\x00\x00")
	b.seal(false)
	b.void(8)
	b.void(16)
	b.add(Header{Type: TypeTombstone, Table: 3, Version: 3}, "alpha", "")
	b.void(40)
	b.add(Header{Type: TypePut, Kind: KindStream, Chunked: true, Table: 1 << 31, Version: 4}, "", "")
	b.seal(false)
	return b
}

// randomBatches fills a segment with batches of records of all sizes.
func randomBatches(r *rand.Rand, segmentBytes, maxValue int) *builder {
	b := startSegment(segmentBytes)
	for b.room() > 0 {
		for range r.IntN(6) {
			b.addRandom(r, maxValue)
		}
		b.seal(false)
		if b.room() < 0 {
			break
		}
	}
	return b
}

func (b *builder) addRandom(r *rand.Rand, maxValue int) {
	key, value := randomBytes(r, r.IntN(40)), randomBytes(r, r.IntN(maxValue+1))
	if r.IntN(4) == 0 {
		clear(value)
	}
	h := Header{Type: TypePut, Kind: Kind(r.IntN(6)), Table: TableID(r.Uint32()), Version: r.Uint64() >> 1}
	if r.IntN(2) == 0 {
		h.ExpireAt = r.Int64()
	}
	if Size(len(key), len(value), h.ExpireAt != 0) <= b.room() {
		b.add(h, string(key), string(value))
	}
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// seeded returns a generator, and prints its seed if the test fails.
func seeded(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 0))
}
