package shm_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/fabrictest"
)

// separate starts a NIC in a process of its own.
func separate(b *testing.B) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "nic.sock")
	fabrictest.SpawnServing(b, "nic", path)
	return path
}

func report(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
}

// BenchmarkGroupWrite is a gWRITE of 128 bytes down a chain of 3, one at a time.
func BenchmarkGroupWrite(b *testing.B) {
	c := fabrictest.NewChain(b, open(b, separate(b), "client", "r1", "r2", "r3"))
	took := make([]time.Duration, 0, b.N+1)
	for b.Loop() {
		began := time.Now()
		c.Write(0, 128)
		c.Acknowledged()
		took = append(took, time.Since(began))
		c.Arm()
	}
	report(b, took)
}

// BenchmarkWrite is a WRITE of 128 bytes, one at a time and 64 in flight.
func BenchmarkWrite(b *testing.B) {
	path := separate(b)
	b.Run("1", func(b *testing.B) {
		x, y := fabrictest.Pair(b, open(b, path, "a", "b"))
		w := fabric.Write(y.At(0), x.Piece(0, 128))
		took := make([]time.Duration, 0, b.N+1)
		for b.Loop() {
			began := time.Now()
			x.Do(w)
			took = append(took, time.Since(began))
		}
		report(b, took)
	})
	b.Run("64", func(b *testing.B) {
		x, y := fabrictest.Pair(b, open(b, path, "a", "b"))
		batch := make([]fabric.WR, 64)
		for i := range batch {
			batch[i] = fabric.Write(y.At(uint64(i*128)), x.Piece(0, 128))
		}
		batch[63] = batch[63].Signal(1)
		for b.Loop() {
			if err := x.QP().Post(batch...); err != nil {
				b.Fatal(err)
			}
			x.Next()
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/write")
	})
}
