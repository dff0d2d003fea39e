package redis

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// bitAt is the plainest way to look at a bit.
func bitAt(p []byte, i int64) bool { return p[i/8]&(0x80>>(i%8)) != 0 }

// drawRange draws a bitmap and a range of bits in it.
func drawRange(t *rapid.T) (p []byte, first, last int64) {
	p = rapid.SliceOfN(rapid.SampledFrom([]byte{0, 0xff, 0x10, 0xa5}), 1, 40).Draw(t, "bitmap")
	first = rapid.Int64Range(0, int64(len(p))*8-1).Draw(t, "first")
	last = rapid.Int64Range(first, int64(len(p))*8-1).Draw(t, "last")
	return p, first, last
}

func TestCountingAndFindingBitsAgreesWithLookingAtEach(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, first, last := drawRange(t)
		var ones int64
		found := map[bool]int64{true: -1, false: -1}
		for i := last; i >= first; i-- {
			if bitAt(p, i) {
				ones++
			}
			found[bitAt(p, i)] = i
		}
		if got := countBits(p, first, last); got != ones {
			t.Fatalf("counted %d, want %d", got, ones)
		}
		for want, at := range found {
			if got := findBit(p, want, first, last); got != at {
				t.Fatalf("first %v is at %d, want %d", want, got, at)
			}
		}
	})
}

func TestBitIntegersReadBackWhatTheyWrote(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOfN(rapid.Byte(), 40, 40).Draw(t, "bitmap")
		signed := rapid.Bool().Draw(t, "signed")
		width := rapid.UintRange(1, 63).Draw(t, "width")
		if signed {
			width++
		}
		f := bitInt{offset: rapid.Uint64Range(0, 40*8-64).Draw(t, "offset"), width: width, signed: signed}
		low, high := f.limits()
		value := rapid.Int64Range(low, high).Draw(t, "value")
		before := bytes.Clone(p)
		f.set(p, value)
		if got := f.get(p); got != value {
			t.Fatalf("wrote %d, read %d", value, got)
		}
		for i := int64(0); i < 40*8; i++ {
			if inside := uint64(i) >= f.offset && uint64(i) < f.end(); !inside && bitAt(p, i) != bitAt(before, i) {
				t.Fatalf("bit %d outside of the integer changed", i)
			}
		}
	})
}

func TestBitIntegersOverflowByMode(t *testing.T) {
	u2, i8, i64 := bitInt{width: 2}, bitInt{width: 8, signed: true}, bitInt{width: 64, signed: true}
	for _, c := range []struct {
		f          bitInt
		value, add int64
		mode       overflowMode
		want       int64
		ok         bool
	}{
		{u2, 3, 1, overflowWrap, 0, true},
		{u2, 3, 1, overflowSaturate, 3, true},
		{u2, 3, 1, overflowFail, 0, false},
		{u2, 1, -2, overflowWrap, 3, true},
		{u2, 1, -2, overflowSaturate, 0, true},
		{u2, -1, 0, overflowWrap, 3, true},
		{u2, 2, 1, overflowFail, 3, true},
		{i8, 127, 1, overflowWrap, -128, true},
		{i8, 127, 1, overflowSaturate, 127, true},
		{i8, -128, -1, overflowSaturate, -128, true},
		{i8, 1000, 0, overflowSaturate, 127, true},
		{i64, 1<<63 - 1, 1, overflowWrap, -1 << 63, true},
		{i64, 1<<63 - 1, 1, overflowFail, 0, false},
		{i64, -1 << 63, -1, overflowSaturate, -1 << 63, true},
	} {
		if got, ok := c.f.fit(c.value, c.add, c.mode); got != c.want || ok != c.ok {
			t.Errorf("%+v: %d + %d in mode %d is %d, %v; want %d, %v", c.f, c.value, c.add, c.mode, got, ok, c.want, c.ok)
		}
	}
}

func TestLongestCommonSubsequenceIsCommonAndAsLongAsTold(t *testing.T) {
	letters := rapid.SliceOfN(rapid.SampledFrom([]byte("abc")), 0, 25)
	rapid.Check(t, func(t *rapid.T) {
		a, b := letters.Draw(t, "a"), letters.Draw(t, "b")
		table := newLCSTable(a, b)
		common, runs := table.walk()
		if len(common) != table.length() || !isSubsequence(common, a) || !isSubsequence(common, b) {
			t.Fatalf("%q is no common subsequence of length %d", common, table.length())
		}
		total := 0
		for _, r := range runs {
			if !bytes.Equal(a[r.a:r.a+r.length], b[r.b:r.b+r.length]) {
				t.Fatalf("run %+v differs", r)
			}
			total += r.length
		}
		if total != len(common) {
			t.Fatalf("the runs hold %d bytes, want %d", total, len(common))
		}
	})
}

func isSubsequence(s, of []byte) bool {
	for _, c := range of {
		if len(s) > 0 && s[0] == c {
			s = s[1:]
		}
	}
	return len(s) == 0
}
