package migrate

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// Operations wait for what goes with a yielding: one value of a gigabyte among the keys in use must not hold them up.
func TestLargeValuesAreNotSentAheadNorVeryMany(t *testing.T) {
	st := newStore(t)
	ss, err := st.NewSession()
	check(t, err)
	defer ss.Close()
	var list []store.ArrivingKey
	put := func(name string, bytes int) {
		k := ss.Key(0, []byte(name))
		list = append(list, store.ArrivingKey{Place: k.Place, Bytes: k.Bytes})
		ss.Begin()
		defer ss.End()
		if got := ss.Put(&k, store.Write{Value: make([]byte, bytes)}, nil); got != store.OK {
			t.Fatal(got, ss.Err())
		}
		ss.Seal()
	}
	put("in pieces", 4<<20)
	put("large", 20<<10)
	for i := range 300 {
		put(fmt.Sprint("small", i), 8<<10)
	}
	shelf := NewShelf(st)
	defer shelf.Close()
	bytes, entries := 0, 0
	check(t, shelf.sendKeys(list, func(part []byte) error {
		bytes, entries = bytes+len(part), entries+entriesIn(part)
		return nil
	}))
	if bytes > sampleBytes || entries < 100 || entries >= 300 {
		t.Errorf("%d bytes in %d entries were sent ahead; at most %d bytes may be", bytes, entries, sampleBytes)
	}
	entries = 0
	check(t, shelf.sendKeys(list[:3], func(part []byte) error {
		entries += entriesIn(part)
		return nil
	}))
	if entries != 1 {
		t.Errorf("%d entries of two large values and a small one were sent ahead", entries)
	}
}

// A store is closed when its shelf is, and who looks at it then looks at memory that is gone.
func TestAShelfIsNotClosedWhileItIsSurveyed(t *testing.T) {
	shelf, closed := NewShelf(filled(t, 100)), make(chan struct{})
	began := false
	err := shelf.Survey(1000, func(record.Place, int64) {
		if !began {
			began = true
			go func() { shelf.Close(); close(closed) }()
		}
		select {
		case <-closed:
			t.Error("it was closed")
		default:
		}
	})
	if err != nil || !began {
		t.Fatal(began, err)
	}
	<-closed
	if err := shelf.Survey(1, func(record.Place, int64) { t.Error("a closed one tells of records") }); !errors.Is(err, errShelfClosed) {
		t.Errorf("a closed shelf says %v", err)
	}
}
