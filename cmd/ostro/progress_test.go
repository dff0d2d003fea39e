package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ostrodb/ostro/engine/store"
)

func TestAProgressLineFitsItsWidth(t *testing.T) {
	p := store.Progress{Stage: "replay", Done: 512 << 20, Total: 1 << 30, Unit: "bytes"}
	if got, want := progressLine(p, 2*time.Second, 120), "replay  ████████████░░░░░░░░░░░░   50%  512 MiB of 1.0 GiB  256 MiB/s  2s left"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	for width := range 120 {
		if n := utf8.RuneCountInString(progressLine(p, 2*time.Second, width)); n > width {
			t.Errorf("%d columns in %d", n, width)
		}
	}
}

func TestAProgressBarDrawsRarelyAndAlwaysTheEnd(t *testing.T) {
	var out bytes.Buffer
	clock := time.Unix(1000, 0)
	b := &progressBar{out: &out, now: func() time.Time { return clock }, width: func() int { return 80 }}
	for i := range int64(1001) {
		b.Update(store.Progress{Stage: "scan", Done: i, Total: 1000, Unit: "segments"})
		clock = clock.Add(time.Millisecond)
	}
	b.Update(store.Progress{Stage: "index", Done: 1, Total: 2})
	b.Finish()
	if n := strings.Count(out.String(), "\r"); n > 14 {
		t.Errorf("drawn %d times", n)
	}
	lines := strings.Split(out.String(), "\n")
	if len(lines) != 3 || !strings.Contains(lines[0], "100%") || !strings.Contains(lines[1], "index") {
		t.Errorf("got %q", lines)
	}
}

func TestNoBarIsNoTrouble(t *testing.T) {
	var b *progressBar
	b.Update(store.Progress{Stage: "x"})
	b.Clear()
	b.Finish()
}

func TestNumbersAreGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567"} {
		if got := thousands(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}
