package call_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server/call"
)

// One of two keys is there at any moment, now this one and now that. What a call has read was there at one moment, too,
// though absent keys have no versions that would tell one absence from another.
func TestACallThatFindsKeysAbsentFindsThemSoAtOneMoment(t *testing.T) {
	t.Run("where it began", func(t *testing.T) { absentAtOneMoment(t, 0, 100_000) })
	t.Run("in the scheduler", func(t *testing.T) { absentAtOneMoment(t, 300, 200) })
}

// absentAtOneMoment has calls read as many other keys beside.
func absentAtOneMoment(t *testing.T, others, calls int) {
	w := newWorld(t, store.Options{Durability: store.None})
	keys := []string{"here", "there"}
	one := binary.LittleEndian.AppendUint64(nil, 1)
	w.put(keys[0], string(one))
	r := w.request("total", keys[0])
	for i := range others {
		key := fmt.Sprint("o", i)
		w.put(key, string(make([]byte, 8)))
		r.Keys = append(r.Keys, []byte(key))
	}
	r.Keys = append(r.Keys, []byte(keys[1]))
	if others == 0 {
		w.warm(r)
	}
	var stop atomic.Bool
	var moving sync.WaitGroup
	defer moving.Wait()
	defer stop.Store(true)
	moving.Go(func() {
		ss, err := w.st.NewSession()
		if err != nil {
			t.Error(err)
			return
		}
		defer ss.Close()
		for at := 0; !stop.Load(); at = 1 - at {
			ss.Begin()
			both := []store.Key{ss.Key(0, []byte(keys[at])), ss.Key(0, []byte(keys[1-at]))}
			if st := ss.Lock(both); st != store.OK {
				t.Error(st, ss.Err())
			}
			ss.Delete(&both[0], nil)
			ss.Put(&both[1], store.Write{Value: one}, nil)
			if st := ss.Commit(); st != store.OK {
				t.Error(st, ss.Err())
			}
			ss.End()
		}
	})
	before := w.host.Metrics().Scheduled
	defer func() {
		if n := w.host.Metrics().Scheduled - before; others > 0 && n < int64(calls) {
			t.Errorf("%d of %d calls were scheduled", n, calls)
		}
	}()
	for i := range calls {
		response, err := w.call(r)
		if errors.Is(err, call.ErrConflict) {
			continue // It says so, and is right.
		}
		if err != nil {
			t.Fatal(err)
		}
		if sum := binary.LittleEndian.Uint64([]byte(response)); sum != 1 {
			t.Fatalf("call %d has found %d of them", i, sum)
		}
	}
}
