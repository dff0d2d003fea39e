package index

import (
	"testing"

	"github.com/ostrodb/ostro/engine/record"
)

// inBucket gives places of one bucket and one sub-table that differ in their tags.
func inBucket(n int) (places []record.Place) {
	for i := range record.Place(n) {
		places = append(places, 5|(i+1)<<32)
	}
	return places
}

// started starts probes of one bucket together.
func started(t *testing.T, ix fixture, places []record.Place) []Probe {
	t.Helper()
	probes := make([]Probe, len(places))
	for i, p := range places {
		ix.SeekPrefetch(p, &probes[i])
	}
	ix.Start(&probes[0])
	for i := range probes[1:] {
		if !ix.StartWith(&probes[i+1], &probes[0]) {
			t.Fatal("places of one bucket do not start together")
		}
	}
	return probes
}

// insertTogether inserts keys from one on through probes that were started together.
func insertTogether(t *testing.T, ix fixture, probes []Probe, first int) {
	t.Helper()
	if !ix.Hold(&probes[0]) {
		t.Fatal("nobody else is there, and it is held by another")
	}
	for i := range probes {
		if !ix.InsertHeld(&probes[0], &probes[i], addressFor(uint64(first+i), 0)) {
			t.Fatalf("entry %d of %d found no room", i, len(probes))
		}
	}
	ix.Release(&probes[0], len(probes))
}

func TestEntriesOfOneBucketAreInsertedTogether(t *testing.T) {
	for _, n := range []int{1, 3, bucketWords, bucketWords + 1, 3 * bucketWords} {
		ix := open(t, Options{})
		places := inBucket(n)
		probes := started(t, ix, places)
		insertTogether(t, ix, probes, 0)
		if ix.Len() != int64(n) {
			t.Errorf("%d entries, want %d", ix.Len(), n)
		}
		for i, p := range places {
			var pr Probe
			ix.Seek(p, &pr)
			if !pr.Next() || pr.Address() != addressFor(uint64(i), 0) || pr.Next() {
				t.Errorf("entry %d of %d is not there once", i, n)
			}
		}
	}
}

func TestABucketThatChangedIsNotHeld(t *testing.T) {
	ix := open(t, Options{})
	places := inBucket(3)
	probes := started(t, ix, places[:2])
	var other Probe
	ix.Seek(places[2], &other)
	if r := ix.Insert(&other, addressFor(9, 0)); r != Inserted {
		t.Fatal(r)
	}
	if ix.Hold(&probes[0]) {
		t.Fatal("something was inserted meanwhile, and nobody noticed")
	}
	probes = started(t, ix, places[:2])
	if !ix.Hold(&probes[0]) || !ix.InsertHeld(&probes[0], &probes[1], addressFor(1, 0)) {
		t.Fatal("it cannot be held after another look")
	}
	ix.Release(&probes[0], 1)
	if again := started(t, ix, places[:1]); !ix.Hold(&again[0]) {
		t.Fatal("it is not free after Release")
	} else {
		ix.Release(&again[0], 0)
	}
}

func TestPlacesOfOtherBucketsDoNotStartTogether(t *testing.T) {
	ix := open(t, Options{Entries: 100_000})
	var first, other Probe
	ix.SeekPrefetch(5, &first)
	ix.Start(&first)
	for _, p := range []record.Place{6, 5 | 1<<63} {
		if ix.SeekPrefetch(p, &other); ix.StartWith(&other, &first) {
			t.Errorf("%x starts with 5", uint64(p))
		}
	}
}

func TestAPlaceNearAnotherOneIsLocatedLikeAnyOther(t *testing.T) {
	ix := open(t, Options{Entries: 1_000_000})
	var near, want, got Probe
	ix.SeekPrefetch(5|7<<32, &near)
	for _, p := range []record.Place{5 | 7<<32, 5 | 8<<32, 6 | 7<<32, 5 | 1<<60, 5 | 1<<63, ^record.Place(0), 0} {
		ix.SeekPrefetch(p, &want)
		if ix.SeekNear(p, &got, &near); got != want {
			t.Errorf("%x is at %x of table %x, want %x of %x", uint64(p), got.primary, got.table, want.primary, want.table)
		}
	}
}

// What is free behind the room that was found last is found by who comes next.
func TestEntriesThatAreInsertedTogetherGoOnWhereThereIsRoom(t *testing.T) {
	ix := open(t, Options{})
	places := inBucket(2*bucketWords + 4)
	insertTogether(t, ix, started(t, ix, places[:2*bucketWords]), 0)
	for _, i := range []int{1, bucketWords - 1, bucketWords + 2} { // Holes in two buckets of the chain.
		var pr Probe
		if ix.Seek(places[i], &pr); !pr.Next() || !ix.Remove(&pr) {
			t.Fatalf("entry %d is not removed", i)
		}
	}
	insertTogether(t, ix, started(t, ix, places[2*bucketWords:]), 2*bucketWords)
	for i, p := range places {
		var pr Probe
		ix.Seek(p, &pr)
		removed := i == 1 || i == bucketWords-1 || i == bucketWords+2
		if there := pr.Next(); there == removed {
			t.Errorf("entry %d is there: %v", i, there)
		}
	}
	if n := ix.Len(); n != int64(len(places)-3) {
		t.Errorf("%d entries", n)
	}
}
