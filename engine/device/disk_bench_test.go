package device_test

import (
	"io"
	"math/rand/v2"
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/record"
)

const benchSegment = 8 << 20

// BenchmarkStore appends 128 bytes at a time through mappings; a new segment every
// 8 MiB is not counted.
func BenchmarkStore(b *testing.B) {
	d := openDisk(b, b.TempDir())
	var f device.File
	var m []byte
	next := record.SegmentID(0)
	entry := make([]byte, 128)
	b.SetBytes(int64(len(entry)))
	off := benchSegment
	for b.Loop() {
		if off == benchSegment {
			b.StopTimer()
			f, m = nextSegment(b, d, f, next)
			next++
			off = 0
			b.StartTimer()
		}
		off += copy(m[off:], entry)
	}
	must(b, f.Close())
}

// nextSegment is what a background goroutine does ahead of time.
func nextSegment(b *testing.B, d *device.Disk, old device.File, id record.SegmentID) (device.File, []byte) {
	if old != nil {
		must(b, old.Close())
		must(b, d.Remove(id-1))
	}
	f, err := d.Create(id, benchSegment)
	must(b, err)
	m, err := f.Map()
	must(b, err)
	return f, m
}

// BenchmarkCreate makes segments ready for stores.
func BenchmarkCreate(b *testing.B) {
	d := openDisk(b, b.TempDir())
	var f device.File
	id := record.SegmentID(0)
	for b.Loop() {
		f, _ = nextSegment(b, d, f, id)
		id++
	}
	must(b, f.Close())
}

// BenchmarkSync is a store and a sync, as for one reply that waits for the disk.
func BenchmarkSync(b *testing.B) {
	d := openDisk(b, b.TempDir())
	f, m := nextSegment(b, d, nil, 0)
	must(b, f.Sync())
	off := 0
	for b.Loop() {
		m[off] = 1
		must(b, f.Sync())
		off = (off + 128) % benchSegment
	}
	must(b, f.Close())
}

// BenchmarkColdRead reads what is not in the cache, one entry's page at a time.
func BenchmarkColdRead(b *testing.B) {
	d := openDisk(b, b.TempDir())
	f, _ := nextSegment(b, d, nil, 0)
	must(b, f.Sync())
	must(b, f.Unmap())
	p := make([]byte, 512)
	rng := rand.New(rand.NewPCG(1, 1))
	for n := 0; b.Loop(); n++ {
		if n%256 == 0 {
			b.StopTimer()
			must(b, f.DropCache())
			b.StartTimer()
		}
		if _, err := f.ReadAt(p, rng.Int64N(benchSegment-512)); err != nil && err != io.EOF {
			b.Fatal(err)
		}
	}
	must(b, f.Close())
}
