package record

import (
	"math/rand/v2"
	"testing"
)

func TestAChainOfManyEntriesIsThatOfEach(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var b []byte
	for range 500 {
		at := len(b)
		if rng.IntN(3) == 0 { // Short ones have no whole header.
			n := 8 * (1 + rng.IntN(6))
			b = append(b, make([]byte, n)...)
			EncodeVoid(b[at:], n)
		} else {
			key, value := make([]byte, rng.IntN(40)), make([]byte, rng.IntN(200))
			b = append(b, make([]byte, Size(len(key), len(value), false))...)
			Encode(b[at:], &Header{Type: TypePut, Version: rng.Uint64() >> 1}, key, value, true)
		}
		one, all := NewChain(7), NewChain(7)
		one.addEach(PtrOf(b), len(b))
		all.AddAll(PtrOf(b), len(b))
		if one != all {
			t.Fatalf("after %d bytes: %x, want %x", len(b), all.Sum(), one.Sum())
		}
	}
	c := NewChain(7)
	if c.AddAll(PtrOf(b), 0); c != NewChain(7) {
		t.Error("no entry changed it")
	}
}
