package redis

import (
	"strings"
	"testing"
)

func TestGlobMatchesAsRedisDoes(t *testing.T) {
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"*", "anything", true},
		{"*", "", false}, // KEYS and SCAN treat a lone star apart
		{"", "", true},
		{"", "a", false},
		{"h?llo", "hello", true},
		{"h?llo", "hllo", false},
		{"h*llo", "heeeello", true},
		{"h**llo", "hllo", true},
		{"*a*b*c", "xxaxxbxxbc", true},
		{"*a*b*c", "xxaxxbxxb", false},
		{"h[ae]llo", "hallo", true},
		{"h[ae]llo", "hillo", false},
		{"h[^e]llo", "hallo", true},
		{"h[^e]llo", "hello", false},
		{"h[a-c]llo", "hbllo", true},
		{"h[c-a]llo", "hbllo", true}, // turned around
		{"h[a-c]llo", "hdllo", false},
		{"[a-]", "-", false}, // a range up to ]
		{"[a", "a", true},    // ends with the pattern
		{"[", "[", false},
		{"[^", "x", true},
		{"[]a]", "a", false}, // the class is empty
		{"[\\]]", "]", true},
		{"\\*", "*", true},
		{"\\*", "a", false},
		{"\\", "\\", true},
		{"a\\", "a\\", true},
		{"[\x80-\xff]", "\x90", true},
		{"[a-\xff]", "z", false}, // bytes are signed: from \xff up to a
		{"[\x01-\x7f]", "\x90", false},
		{"k*1", "k11", true},
		{"?*", "", false},
	} {
		if got := globMatch([]byte(c.pattern), []byte(c.s), false); got != c.want {
			t.Errorf("globMatch(%q, %q) = %v, want %v", c.pattern, c.s, got, c.want)
		}
	}
}

func TestGlobFoldsCaseOnRequest(t *testing.T) {
	for pattern, s := range map[string]string{"MaxMem*": "maxmemory", "[A-C]x": "bX", "\\A": "a"} {
		if !globMatch([]byte(pattern), []byte(s), true) {
			t.Errorf("%q does not match %q", pattern, s)
		}
		if globMatch([]byte(pattern), []byte(s), false) {
			t.Errorf("%q matches %q without folding", pattern, s)
		}
	}
}

func TestGlobWithManyStarsEndsSoon(t *testing.T) {
	pattern, s := []byte("a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b"), make([]byte, 1<<16)
	for i := range s {
		s[i] = 'a'
	}
	if globMatch(pattern, s, false) {
		t.Error("matches without a b")
	}
}

// What would take long is given up: the loop stands still meanwhile.
func TestAGlobTakesStepsByTheLengthOfItsString(t *testing.T) {
	as := func(n int) string { return strings.Repeat("a", n) }
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"user:*:name", "user:" + as(60_000) + ":name", true},
		{"*a*a*a*", as(60_000), true},
		{"[" + strings.Repeat("b", 4000) + "a]", "a", true},
		{"[" + strings.Repeat("b", 1<<20) + "a]", "a", false},
		{"*[" + strings.Repeat("b", 1<<20) + "a]", as(60_000), false},
		{"*" + as(30_000) + "b", as(60_000) + "b", false},
	} {
		if got := globMatch([]byte(c.pattern), []byte(c.s), false); got != c.want {
			t.Errorf("globMatch(%.20q of %d bytes, %.20q of %d) = %v, want %v", c.pattern, len(c.pattern), c.s, len(c.s), got, c.want)
		}
	}
}

func FuzzGlobNeverPanics(f *testing.F) {
	f.Add([]byte("[a-\\]*?"), []byte("abc"))
	f.Add([]byte("[^"), []byte(""))
	f.Fuzz(func(t *testing.T, pattern, s []byte) {
		plain := globMatch(pattern, s, false)
		if plain && len(pattern) == 0 && len(s) > 0 {
			t.Error("the empty pattern matches something")
		}
	})
}
