package store_test

import (
	"encoding/binary"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// BenchmarkMove moves half of a million records of 130 B from one store to another, in pulls as a migration asks for, and tells what
// each end takes of a processor for a record, whatever else runs on the machine. Entries come in the order in which a source has them, and the target has made memory ready, as in a migration.
func BenchmarkMove(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	half := store.Range{First: 1 << 63, Last: ^record.Place(0)}
	source := moving(b)
	ss := session(b, source)
	fillForMoves(b, ss)
	var pulled, replayed time.Duration
	var moved int64
	for b.Loop() {
		b.StopTimer()
		target := moving(b)
		must(b, target.Prepare(b.Context(), []store.Range{half}, pullRecords/2, pullRecords/2*160))
		a, err := target.Arrive(store.ArriveOptions{Ranges: []store.Range{half}, Ceiling: source.Ceiling(), Puller: noPuller{b}})
		must(b, err)
		a.Hasten(true)
		w, err := a.NewWorker()
		must(b, err)
		b.StartTimer()
		answer, known := make([]byte, 0, 2*pullBytes), make([]byte, 0, pullBytes)
		for cursor, more := (store.PullCursor{}), true; more; more = cursor != (store.PullCursor{}) {
			answer, known = answer[:0], known[:0]
			began := threadTime()
			ss.Begin()
			var s store.Status
			cursor, s = ss.PullWith(half, cursor, store.PullOptions{
				MaxBytes: pullBytes,
				Known:    func(p record.Place) { known = binary.LittleEndian.AppendUint64(known, uint64(p)) },
				Emit: func(entry []byte) {
					at := len(answer)
					answer = answer[:at+len(entry)]
					copy(answer[at:], entry)
				},
			})
			ss.End()
			if s != store.OK {
				b.Fatal(s, ss.Err())
			}
			came := threadTime()
			must(b, w.ImportKnown(b.Context(), answer, known))
			pulled += came - began
			replayed += threadTime() - came
		}
		b.StopTimer()
		keys, _ := target.Count(0)
		moved += keys
		must(b, a.Finish(b.Context()))
		a.End()
		must(b, target.Close())
		b.StartTimer()
	}
	b.ReportMetric(float64(pulled.Nanoseconds())/float64(moved), "pull-ns/record")
	b.ReportMetric(float64(replayed.Nanoseconds())/float64(moved), "replay-ns/record")
	b.ReportMetric(0, "ns/op")
}

// threadTime is how long this thread has run.
func threadTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}

// moving is a store of a cluster's node.
func moving(b *testing.B) *store.Store {
	b.Helper()
	st, err := store.Open(store.Options{Dir: b.TempDir(), Durability: store.EverySec, Cluster: true})
	must(b, err)
	b.Cleanup(func() { _ = st.Close() }) // It may be closed by then.
	return st
}

// fillForMoves writes a million records of 30 B keys and 100 B values.
func fillForMoves(b *testing.B, ss *store.Session) {
	b.Helper()
	var key [30]byte
	copy(key[:], "user:profile:000000000")
	value := make([]byte, 100)
	for i := 0; i < pullRecords; i += 1000 {
		if s := attempt(ss, func() store.Status {
			for n := range 1000 {
				binary.LittleEndian.PutUint64(key[22:], uint64(i+n)*0x9E3779B97F4A7C15)
				k := ss.Key(0, key[:])
				if s := ss.Put(&k, store.Write{Value: value}, nil); s != store.OK {
					return s
				}
			}
			return store.OK
		}); s != store.OK {
			b.Fatal(s, ss.Err())
		}
	}
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
