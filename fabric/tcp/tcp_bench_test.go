package tcp_test

import (
	"testing"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/fabrictest"
)

// BenchmarkWrite is a WRITE over loopback: of 128 bytes, one at a time and 64 in
// flight, and of a mebibyte.
func BenchmarkWrite(b *testing.B) {
	for _, c := range []struct {
		name  string
		n     int
		bytes uint32
	}{{"128B-1", 1, 128}, {"128B-64", 64, 128}, {"1MiB-1", 1, 1 << 20}} {
		b.Run(c.name, func(b *testing.B) {
			x, y := fabrictest.Pair(b, []fabric.Device{device(b, host(b, secret), "a"), device(b, host(b, secret), "b")})
			batch := make([]fabric.WR, c.n)
			for i := range batch {
				batch[i] = fabric.Write(y.At(0), x.Piece(0, c.bytes))
			}
			batch[c.n-1] = batch[c.n-1].Signal(1)
			b.SetBytes(int64(c.n) * int64(c.bytes))
			for b.Loop() {
				if err := x.QP().Post(batch...); err != nil {
					b.Fatal(err)
				}
				x.Next()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*c.n), "ns/write")
		})
	}
}

// BenchmarkPipelinedWrite keeps up to 128 WRITEs of 128 bytes in flight.
func BenchmarkPipelinedWrite(b *testing.B) {
	x, y := fabrictest.Pair(b, []fabric.Device{device(b, host(b, secret), "a"), device(b, host(b, secret), "b")})
	const burst = 32
	batch := make([]fabric.WR, burst)
	for i := range batch {
		batch[i] = fabric.Write(y.At(uint64(i*128)), x.Piece(0, 128))
	}
	batch[burst-1] = batch[burst-1].Signal(1)
	flying := 0
	for b.Loop() {
		if flying == 3 {
			x.Next()
			flying--
		}
		if err := x.QP().Post(batch...); err != nil {
			b.Fatal(err)
		}
		flying++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*burst), "ns/write")
}
