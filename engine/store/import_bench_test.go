package store_test

import (
	"encoding/binary"
	"fmt"
	"sync"
	"testing"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// foreignLog makes the log of another store: records of 30 B keys and 100 B values,
// cut into pieces as segments are.
func foreignLog(records int) (pieces [][]byte) {
	const pieceBytes = 8 << 20
	var key [30]byte
	value := make([]byte, 100)
	copy(key[:], "user:profile:000000000")
	n := record.Size(len(key), len(value), false)
	var b []byte
	for i := range records {
		if len(b)+n > cap(b) {
			b = make([]byte, 0, pieceBytes)
			pieces = append(pieces, nil)
		}
		binary.LittleEndian.PutUint64(key[22:], uint64(i)*0x9E3779B97F4A7C15)
		at := len(b)
		b = b[:at+n]
		record.Encode(b[at:], &record.Header{Type: record.TypePut, Version: 1}, key[:], value, true)
		pieces[len(pieces)-1] = b
	}
	return pieces
}

// BenchmarkImport imports a million records into a logged store.
func BenchmarkImport(b *testing.B) {
	const records = 1_000_000
	pieces := foreignLog(records)
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("%d workers", workers), func(b *testing.B) {
			for b.Loop() {
				importOnce(b, pieces, workers, records)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/records, "ns/record")
		})
	}
}

func importOnce(b *testing.B, pieces [][]byte, workers int, records int64) {
	b.StopTimer()
	st, err := store.Open(store.Options{Dir: b.TempDir(), Durability: store.EverySec, Cluster: true})
	if err != nil {
		b.Fatal(err)
	}
	b.StartTimer()
	im, err := st.NewImporter(store.ImportOptions{})
	if err != nil {
		b.Fatal(err)
	}
	var wg sync.WaitGroup
	for n := range workers {
		w, err := im.NewWorker()
		if err != nil {
			b.Fatal(err)
		}
		wg.Go(func() {
			for i := n; i < len(pieces); i += workers {
				if err := w.Import(b.Context(), pieces[i]); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := im.Finish(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	if keys, _ := st.Count(0); keys != records {
		b.Fatalf("%d keys, want %d", keys, records)
	}
	if err := st.Close(); err != nil {
		b.Fatal(err)
	}
	b.StartTimer()
}
