package store_test

import (
	"testing"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

const (
	pullBytes   = 20 << 10 // of one pull, as a migration asks for
	pullRecords = 1_000_000
)

var everyPlace = store.Range{First: 0, Last: ^record.Place(0)}

// BenchmarkPull gives a million records of 130 B away, as a source does: into the buffer of
// an answer.
func BenchmarkPull(b *testing.B) {
	st := moving(b)
	defer st.Close()
	ss := session(b, st)
	fillForMoves(b, ss)
	answer := make([]byte, 0, 2*pullBytes)
	bytes, records := 0, 0
	for b.Loop() {
		bytes, records = 0, 0
		for cursor, more := (store.PullCursor{}), true; more; more = cursor != (store.PullCursor{}) {
			answer = answer[:0]
			var s store.Status
			ss.Begin()
			cursor, s = ss.Pull(everyPlace, cursor, pullBytes, func(entry []byte) {
				answer = append(answer, entry...)
				records++
			})
			ss.End()
			if s != store.OK {
				b.Fatal(s, ss.Err())
			}
			bytes += len(answer)
		}
	}
	if records != pullRecords {
		b.Fatalf("%d records, want %d", records, pullRecords)
	}
	b.SetBytes(int64(bytes))
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/pullRecords, "ns/record")
}

// noPuller is for arrivals of which nobody asks for keys.
type noPuller struct{ t testing.TB }

func (p noPuller) Want([]store.ArrivingKey, func(error)) { p.t.Error("nobody asks for keys") }

// BenchmarkArrive imports a million records of 130 B while their places are served, by one
// worker, in letters of the size of a pull.
func BenchmarkArrive(b *testing.B) {
	pieces := foreignLog(pullRecords)
	total := 0
	for _, p := range pieces {
		total += len(p)
	}
	size := record.Size(30, 100, false)
	step := pullBytes / size * size
	b.SetBytes(int64(total))
	for b.Loop() {
		b.StopTimer()
		st, err := store.Open(store.Options{Dir: b.TempDir(), Durability: store.EverySec, Cluster: true})
		if err != nil {
			b.Fatal(err)
		}
		a, err := st.Arrive(store.ArriveOptions{Ranges: []store.Range{everyPlace}, Ceiling: 7, Puller: noPuller{b}})
		if err != nil {
			b.Fatal(err)
		}
		w, err := a.NewWorker()
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		for _, p := range pieces {
			for len(p) > 0 {
				n := min(step, len(p))
				if err := w.Import(b.Context(), p[:n]); err != nil {
					b.Fatal(err)
				}
				p = p[n:]
			}
		}
		b.StopTimer()
		if err := a.Finish(b.Context()); err != nil {
			b.Fatal(err)
		}
		a.End()
		if keys, _ := st.Count(0); keys != pullRecords {
			b.Fatalf("%d keys, want %d", keys, pullRecords)
		}
		if err := st.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/pullRecords, "ns/record")
}
