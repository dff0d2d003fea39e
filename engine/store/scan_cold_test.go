package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/store"
)

func littleMemory(dev device.Device) store.Options {
	return store.Options{Device: dev, Durability: store.EverySec, Databases: 3, MemoryBytes: 4 << 20, SegmentBytes: 256 << 10}
}

// coldNeighbours is a store whose memory holds a small part of database 0; database 1 has few keys, which lie among
// the others on disk, or by themselves in the midst of them.
func coldNeighbours(t *testing.T, dev device.Device, among bool) (*store.Store, *store.Session) {
	t.Helper()
	st := open(t, littleMemory(dev))
	ss := session(t, st)
	write := func(db int, key string) {
		k := ss.Key(db, []byte(key))
		if got := until(t, ss, func() store.Status {
			return ss.Put(&k, store.Write{Value: []byte(strings.Repeat("x", 100))}, nil)
		}); got != store.OK {
			t.Fatal(got, ss.Err())
		}
	}
	const others = 60_000
	for i := range others {
		if write(0, fmt.Sprint("key", i)); among && i%2000 == 0 {
			write(1, fmt.Sprint("few", i))
		}
		for j := 0; !among && i == others/2 && j < 3000; j++ {
			write(1, fmt.Sprint("few", j))
		}
	}
	return st, ss
}

// scanAll scans a database, and tells what it saw and how many cold records it read.
func scanAll(t *testing.T, ss *store.Session, db int) (seen map[string]int, reads int) {
	t.Helper()
	seen = map[string]int{}
	for cursor, first := uint64(0), true; first || cursor != 0; first = false {
		for {
			var step []string
			ss.Begin()
			next, got := ss.Scan(db, cursor, 1000, func(key []byte, _ *store.View) { step = append(step, string(key)) })
			wanted := ss.Wanted()
			ss.End()
			if got == store.OK {
				for _, key := range step {
					seen[key]++
				}
				cursor = next
				break
			}
			if reads += wanted; wanted > 200 {
				t.Fatalf("%d records are read at a time", wanted)
			}
			if err := ss.Fetch(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
	return seen, reads
}

func TestAScanDoesNotReadSegmentsThatHaveNothingOfItsDatabase(t *testing.T) {
	dev := device.NewMemory()
	st, ss := coldNeighbours(t, dev, false)
	look := func(when string) {
		t.Helper()
		seen, reads := scanAll(t, ss, 1)
		if len(seen) != 3000 {
			t.Errorf("%s: %d keys of 3000", when, len(seen))
		}
		if reads == 0 || reads > 2*3000+2*2000 {
			t.Errorf("%s: it read %d records; its own are 3000, and few others share their segments", when, reads)
		}
	}
	look("at first")
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	ss = session(t, open(t, littleMemory(dev)))
	look("after a restart")
}

func TestAScanAmongColdRecordsOfOthersSeesItsOwn(t *testing.T) {
	_, ss := coldNeighbours(t, device.NewMemory(), true)
	if seen, _ := scanAll(t, ss, 1); len(seen) != 30 {
		t.Errorf("%d keys of 30", len(seen))
	}
}

func TestARandomKeyAmongColdRecordsOfOthersIsFound(t *testing.T) {
	_, ss := coldNeighbours(t, device.NewMemory(), true)
	var key []byte
	cursor := uint64(0)
	st := store.NotFound
	for rounds := 0; st != store.OK; rounds++ {
		if rounds == 10_000 {
			t.Fatal("it is not found")
		}
		ss.Begin()
		key, cursor, st = ss.RandomKeyFrom(1, cursor, nil)
		ss.End()
		if st == store.Cold {
			if err := ss.Fetch(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !strings.HasPrefix(string(key), "few") {
		t.Errorf("it is %q", key)
	}
}
