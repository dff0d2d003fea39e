package workload

import (
	"slices"
	"testing"
)

func TestADeckHoldsTheSharesOfItsMix(t *testing.T) {
	for _, m := range Mixes() {
		var count [5]int
		for _, op := range m.Deck(1000, 1) {
			count[op]++
		}
		sum := 0
		for op, share := range m.shares() {
			sum += share
			if count[op] != 10*share {
				t.Errorf("%s: %d cards of operation %d, want %d", m.Name, count[op], op, 10*share)
			}
		}
		if sum != 100 {
			t.Errorf("%s: shares sum to %d", m.Name, sum)
		}
	}
}

func TestADeckIsShuffledByItsSeed(t *testing.T) {
	one, two := YCSBA.Deck(100, 1), YCSBA.Deck(100, 2)
	if slices.Equal(one, two) {
		t.Error("two seeds give one order")
	}
	if !slices.Equal(one, YCSBA.Deck(100, 1)) {
		t.Error("one seed gives two orders")
	}
}

func TestAMixParsesFromItsNameAndItsLetter(t *testing.T) {
	for _, name := range []string{"ycsb-f", "f"} {
		if m, err := ParseMix(name); err != nil || m.Name != "ycsb-f" {
			t.Errorf("%s: got %v, %v", name, m.Name, err)
		}
	}
	if _, err := ParseMix("z"); err == nil {
		t.Error("z was accepted")
	}
}
