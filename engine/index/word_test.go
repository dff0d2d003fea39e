package index

import "testing"

func TestAWordIsTheSameUntilItsEntryChangesOrItsSubTableIsReplaced(t *testing.T) {
	ix := open(t, Options{})
	const key = 7
	p := placeFor(key)
	var w Word
	see := func() {
		t.Helper()
		if a := ix.FirstWord(p, &w); a == 0 || a != ix.First(p) || !w.Same() {
			t.Fatalf("address %x, where First has %x; the same: %v", a, ix.First(p), w.Same())
		}
	}
	changed := func(by string) {
		t.Helper()
		if w.Same() {
			t.Errorf("%s has left a word the same", by)
		}
	}
	ix.put(p, key, addressFor(key, 0))
	see()
	ix.put(p, key, addressFor(key, 1))
	changed("a write")
	see()
	if !ix.growBy(ix.dir.find(p), true) {
		t.Fatal("the sub-table was not replaced")
	}
	changed("a split")
	see()
	ix.remove(p, key)
	changed("a removal")
	if w.Forget(); w.Same() || w.Address() != 0 {
		t.Error("a word that was forgotten is the same")
	}
}

func TestAWordLeadsToItsEntryUntilThatChanges(t *testing.T) {
	ix := open(t, Options{})
	const key, other = 7, 8
	p := placeFor(key)
	ix.put(p, key, addressFor(key, 0))
	spot := ix.Approach(p)
	var w Word
	if a := FirstWordAt(spot, p, &w); a != addressFor(key, 0) || w.Address() != a {
		t.Fatalf("address %x, then %x, want %x", a, w.Address(), addressFor(key, 0))
	}
	if ix.put(p, key, addressFor(key, 1)); w.Address() != 0 {
		t.Errorf("address %x after a write", w.Address())
	}
	q := placeFor(other)
	if a := FirstWordAt(ix.Approach(q), q, &w); a != 0 || w.Address() != 0 {
		t.Errorf("addresses %x and %x of what is not there", a, w.Address())
	}
}
