package record

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/zeebo/xxh3"
)

// slowCRC16 is CRC-16/XMODEM by its definition.
func slowCRC16(b []byte) uint16 {
	crc := uint16(0)
	for _, c := range b {
		crc ^= uint16(c) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}

func TestCRC16IsThatOfRedis(t *testing.T) {
	if got := crc16([]byte("123456789")); got != 0x31C3 {
		t.Fatalf("crc16 of the check string is %#x, want 0x31c3", got)
	}
}

func TestCRC16AgreesWithItsDefinitionAtEveryLength(t *testing.T) {
	r := seeded(t)
	for n := range 1200 {
		b := randomBytes(r, n)
		want := slowCRC16(b)
		if got := crc16(b); got != want {
			t.Fatalf("crc16 of %x is %#x, want %#x", b, got, want)
		}
		if got := crc16Tabled(b); got != want {
			t.Fatalf("crc16 of %x by tables is %#x, want %#x", b, got, want)
		}
	}
}

func TestSlotFollowsTheHashTagRule(t *testing.T) {
	for _, c := range []struct{ key, hashed string }{
		{"", ""},
		{"foo", "foo"},
		{"{user1000}.following", "user1000"},
		{"{user1000}.followers", "user1000"},
		{"foo{}{bar}", "foo{}{bar}"},
		{"foo{{bar}}zap", "{bar"},
		{"foo{bar}{zap}", "bar"},
		{"foo{bar", "foo{bar"},
		{"foo}bar{", "foo}bar{"},
		{"a}b{c}d", "c"},
		{"{}", "{}"},
		{"{x}", "x"},
	} {
		want := slowCRC16([]byte(c.hashed)) % 16384
		if got := SlotOf([]byte(c.key)); got != want {
			t.Errorf("slot of %q is %d, want %d, that of %q", c.key, got, want, c.hashed)
		}
	}
	// As CLUSTER KEYSLOT of Redis answers.
	for key, want := range map[string]uint16{"foo": 12182, "bar": 5061, "hello": 866, "somekey": 11058, "foo{hash_tag}": 2515} {
		if got := SlotOf([]byte(key)); got != want {
			t.Errorf("slot of %q is %d, Redis has %d", key, got, want)
		}
	}
}

func TestPlaceBeginsWithTheSlotInEveryTable(t *testing.T) {
	key := []byte("{user1000}.following")
	one, two := PlaceOf(1, key), PlaceOf(2, key)
	if one == two {
		t.Errorf("place is %#x in two tables", one)
	}
	if one.Slot() != SlotOf(key) || two.Slot() != SlotOf(key) {
		t.Errorf("slots %d and %d, want %d", one.Slot(), two.Slot(), SlotOf(key))
	}
}

func TestPlaceNeverChanges(t *testing.T) {
	for _, c := range []struct {
		table TableID
		key   string
		want  Place
	}{
		{0, "", 0x0000b41a0014e34e},
		{0, "foo", 0xbe5aadb97d901df9},
		{1, "foo", 0xbe595155e8b22d8c},
		{16, "user:1234567890:profile:abcdef", 0x093ba1720d898ab1},
	} {
		if got := PlaceOf(c.table, []byte(c.key)); got != c.want {
			t.Errorf("place of %q in table %d is %#016x, was %#016x when the first segment was written", c.key, c.table, got, c.want)
		}
	}
}

// Sequential keys are the usual ones. Both ends of the hash are used, by ranges
// and by buckets; neither may clump. 512 cells of about 512 keys each: chi
// squared has mean 511 and deviation 32.
func TestPlacesOfSequentialKeysSpreadEvenly(t *testing.T) {
	const keys, cells = 1 << 18, 512
	var slots, high, low [cells]int
	for i := range keys {
		p := PlaceOf(1, fmt.Appendf(nil, "user:%d", i))
		slots[p.Slot()/(PlaceSlots/cells)]++
		high[p>>(placeHashBits-9)%cells]++
		low[p%cells]++
	}
	for name, counts := range map[string][cells]int{"high": high, "low": low} {
		if chi := chiSquared(counts[:], keys); math.Abs(chi-(cells-1)) > 5*32 {
			t.Errorf("%s hash bits: chi squared %.0f over %d cells", name, chi, cells)
		}
	}
	// CRC16 is no hash: it spreads these keys more evenly than chance would.
	if chi := chiSquared(slots[:], keys); chi > cells-1+5*32 {
		t.Errorf("slots: chi squared %.0f over %d cells", chi, cells)
	}
}

func chiSquared(counts []int, total int) float64 {
	want := float64(total) / float64(len(counts))
	chi := 0.0
	for _, n := range counts {
		chi += (float64(n) - want) * (float64(n) - want) / want
	}
	return chi
}

func TestPlacesOfOneSlotDoNotCollide(t *testing.T) {
	seen := make(map[Place]uint64, 1<<17)
	for i := range uint64(1 << 17) {
		key := binary.LittleEndian.AppendUint64([]byte("{tag}"), i)
		p := PlaceOf(1, key)
		if before, ok := seen[p]; ok {
			t.Fatalf("keys %d and %d share the place %#x", before, i, p)
		}
		seen[p] = i
	}
}

func TestShortKeysHashAsXXH3DoesAtEveryLength(t *testing.T) {
	r := seeded(t)
	for n := range 40 {
		for range 200 {
			key := randomBytes(r, n)
			if r.IntN(4) == 0 && n > 0 {
				key[r.IntN(n)] = '{'
			}
			table := TableID(r.Uint32())
			want := Place(slowCRC16(tagged(key))%PlaceSlots)<<placeHashBits | Place(xxh3.HashSeed(key, uint64(table))>>placeSlotBits)
			if got := PlaceOf(table, key); got != want {
				t.Fatalf("place of %x in table %d is %x, want %x", key, table, got, want)
			}
		}
	}
}

// tagged is what of a key decides its slot.
func tagged(key []byte) []byte {
	if open := bytes.IndexByte(key, '{'); open >= 0 {
		return hashTag(key, open)
	}
	return key
}
