package store_test

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// BenchmarkRetract lets go of half of a million records of 130 B, as a source does when a migration is over, and tells what that takes of
// a processor for a record: the collector's part too, which clients notice as well.
func BenchmarkRetract(b *testing.B) {
	half := store.Range{First: 1 << 63, Last: ^record.Place(0)}
	var took time.Duration
	n := int64(0)
	for b.Loop() {
		b.StopTimer()
		st := moving(b)
		ss, err := st.NewSession()
		must(b, err)
		fillForMoves(b, ss)
		ss.Close()
		had, began := st.Metrics().Keys, processTime()
		b.StartTimer()
		must(b, st.Retract(b.Context(), []store.Range{half}))
		b.StopTimer()
		took += processTime() - began
		n += had - st.Metrics().Keys
		st.CloseUnsaved()
		b.StartTimer()
	}
	b.ReportMetric(float64(took)/float64(n), "cpu-ns/record")
}

// processTime is what all threads have run.
func processTime() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
