package redis

import (
	"math"
	"math/big"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

func TestIntegersHaveOneSpelling(t *testing.T) {
	for _, s := range []string{
		"", "-", "+1", "01", "-0", "-01", " 1", "1 ", "1.0", "0x1", "9223372036854775808",
		"-9223372036854775809", "99999999999999999999", "184467440737095516160", "1_0",
	} {
		if n, ok := parseInt([]byte(s)); ok {
			t.Errorf("%q was read as %d", s, n)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{0, 1, -1, math.MaxInt64, math.MinInt64})).Draw(t, "n")
		if got, ok := parseInt([]byte(strconv.FormatInt(n, 10))); !ok || got != n {
			t.Fatalf("%d was read as %d, %v", n, got, ok)
		}
	})
}

func TestSumsThatDoNotFitAreFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b")
		exact := new(big.Int).Add(big.NewInt(a), big.NewInt(b))
		sum, fits := addInt(a, b)
		if fits != exact.IsInt64() || fits && sum != exact.Int64() {
			t.Fatalf("%d + %d = %d, %v; want %s", a, b, sum, fits, exact)
		}
	})
	if sum, fits := addInt(5, 0); sum != 5 || !fits {
		t.Errorf("5 + 0 = %d, %v", sum, fits)
	}
}

func TestLongDoublesAddAndPrintAsOnX87(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"10.5", "0.1", "10.6"},
		{"10.6", "-5", "5.6"},
		{"5.0e3", "2.0e2", "5200"},
		{"3.0e3", "200", "3200"},
		{"0", "0.1", "0.1"},
		{"0.1", "0.2", "0.3"},
		{"1", "1e-17", "1.00000000000000001"},
		{"1", "1e-18", "1"},
		{"-1.5", "1.5", "0"},
		{"0x1p3", "0x.8", "8.5"},
		{"00012.50", "+1", "13.5"},
		{"1e17", "0.5", "100000000000000000.5"},
		{"9223372036854775807", "1", "9223372036854775808"},
		{"123456789.123456789", "0", "123456789.12345678899873747"},
		{".5", "5.", "5.5"},
	} {
		a, ok1 := parseLongDouble([]byte(c.a))
		b, ok2 := parseLongDouble([]byte(c.b))
		if !ok1 || !ok2 {
			t.Errorf("%s or %s is no number", c.a, c.b)
			continue
		}
		sum, finite := addLongDouble(a, b)
		if !finite {
			t.Errorf("%s + %s is not finite", c.a, c.b)
			continue
		}
		if got := string(appendLongDouble(nil, sum)); got != c.want {
			t.Errorf("%s + %s = %s, want %s", c.a, c.b, got, c.want)
		}
	}
}

func TestWhatIsNoLongDoubleIsRefused(t *testing.T) {
	for _, s := range []string{"", " 1", "1 ", "nan", "1e", "e1", "--1", "1_000", "0b1", "0o7", "1e5000", "1e-5000", "0x", ".", "1.2.3", "1e99999999999"} {
		if f, ok := parseLongDouble([]byte(s)); ok {
			t.Errorf("%q was read as %s", s, f)
		}
	}
	inf, ok := parseLongDouble([]byte("-Infinity"))
	if !ok || !inf.IsInf() {
		t.Error("-Infinity was refused")
	}
	if _, finite := addLongDouble(inf, big.NewFloat(1)); finite {
		t.Error("infinity plus one is finite")
	}
	most, _ := parseLongDouble([]byte("1.1e4932"))
	if _, finite := addLongDouble(most, most); finite {
		t.Error("a sum beyond the range is finite")
	}
}

func TestCursorsAreReadAsStrtoulDoes(t *testing.T) {
	for s, want := range map[string]uint64{"0": 0, "": 0, "007": 7, "+5": 5, "-1": math.MaxUint64, "18446744073709551615": math.MaxUint64} {
		if got, ok := parseCursor([]byte(s)); !ok || got != want {
			t.Errorf("%q: %d, %v", s, got, ok)
		}
	}
	for _, s := range []string{" 1", "x", "1x", "+", "-", "18446744073709551616"} {
		if _, ok := parseCursor([]byte(s)); ok {
			t.Errorf("%q was accepted", s)
		}
	}
}

func TestMemoryUnitsAreReadAsRedisDoes(t *testing.T) {
	for s, want := range map[string]int64{"0": 0, "100": 100, "100b": 100, "1k": 1000, "1KB": 1024, "2mb": 2 << 20, "3g": 3e9, "1Gb": 1 << 30} {
		if got, err := parseMemory(s); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "k", "-1", "1.5g", "1tb", "much", "9223372036854775807k"} {
		if n, err := parseMemory(s); err == nil {
			t.Errorf("%q was read as %d", s, n)
		}
	}
}
