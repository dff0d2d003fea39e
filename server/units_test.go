package server

import "testing"

func TestSizesAreReadAsRedisReadsThem(t *testing.T) {
	for text, want := range map[string]Size{
		"0": 0, "17": 17, "1k": 1000, "1kb": 1024, "1KiB": 1024, "512MiB": 512 << 20,
		"2GB": 2 << 30, "2g": 2e9, "1.5gb": 3 << 29, " 3 MB ": 3 << 20, "1tb": 1 << 40, "5b": 5,
	} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("%q: got %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "b", "-1", "1x", "12XB", "1e30GB", "nan", "1 2MB"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("%q was read as %d", text, got)
		}
	}
}

func TestASizeIsPrintedSoThatItIsReadBack(t *testing.T) {
	for _, size := range []Size{0, 1, 1000, 1024, 3 << 20, 8 << 30, 8<<30 + 1, 1 << 40} {
		if got, err := ParseSize(size.String()); err != nil || got != size {
			t.Errorf("%d printed as %s is read as %d, %v", size, size, got, err)
		}
	}
}

func TestShortSizesHaveThreeDigits(t *testing.T) {
	for size, want := range map[Size]string{
		0: "0 B", 999: "999 B", 1000: "1.0 KiB", 1536: "1.5 KiB", 100 << 20: "100 MiB", 3 << 29: "1.5 GiB",
	} {
		if got := size.Short(); got != want {
			t.Errorf("%d: got %s, want %s", size, got, want)
		}
	}
}

func TestABudgetIsBytesOrAShare(t *testing.T) {
	for text, want := range map[string]Size{"50%": 500, "100%": 1000, "2k": 2000} {
		b, err := ParseBudget(text)
		if err != nil || b.Of(1000) != want || b.String() != text && text != "2k" {
			t.Errorf("%q: got %v = %d, %v", text, b, b.Of(1000), err)
		}
	}
	for _, text := range []string{"0", "0%", "101%", "x%", ""} {
		if b, err := ParseBudget(text); err == nil {
			t.Errorf("%q was read as %v", text, b)
		}
	}
}

func TestNearFindsTypingMistakesOnly(t *testing.T) {
	names := []string{"port", "dir", "memory-limit", "requirepass"}
	for name, want := range map[string]string{
		"prot": "port", "prt": "port", "memorylimit": "memory-limit", "memroy-limit": "memory-limit",
		"require-pass": "requirepass", "something-else": "",
	} {
		if got := Near(name, names); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
