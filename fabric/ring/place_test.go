package ring

import (
	"bytes"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func mapped(t testing.TB, n int) []byte {
	t.Helper()
	m, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(m) })
	return m
}

func TestPlaceCopiesEveryLengthAtEveryAlignment(t *testing.T) {
	src, dst := mapped(t, 4096), mapped(t, 4096)
	for i := range src {
		src[i] = byte(i*7 + 1)
	}
	for from := range 9 {
		for to := range 9 {
			for n := range 200 {
				clear(dst)
				Place(unsafe.Pointer(&dst[to]), unsafe.Pointer(&src[from]), uint64(n))
				if !bytes.Equal(dst[to:to+n], src[from:from+n]) {
					t.Fatalf("%d bytes from %d to %d differ", n, from, to)
				}
				if len(bytes.Trim(dst[:to], "\x00")) != 0 || len(bytes.Trim(dst[to+n:], "\x00")) != 0 {
					t.Fatalf("%d bytes from %d to %d wrote beside them", n, from, to)
				}
			}
		}
	}
}

func TestPlaceIsSeenInIncreasingOrder(t *testing.T) {
	const n = 64 << 10
	src, dst := mapped(t, n), mapped(t, n)
	word := func(m []byte, i int) uint64 { return word64(m, 8*i).Load() }
	rounds := uint64(300)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for g := uint64(1); g <= rounds; g++ {
			for i := 0; i < n; i += 8 {
				word64(src, i).Store(g)
			}
			Place(unsafe.Pointer(&dst[0]), unsafe.Pointer(&src[0]), n)
		}
	}()
	for last := n/8 - 1; ; {
		high := word(dst, last)
		if low := word(dst, last/2); low < high {
			t.Fatalf("the last word is of round %d, one before it of round %d", high, low)
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

func BenchmarkPlace(b *testing.B) {
	for _, n := range []int{128, 8 << 10, 64 << 10} {
		b.Run(map[int]string{128: "128B", 8 << 10: "8KiB", 64 << 10: "64KiB"}[n], func(b *testing.B) {
			src, dst := mapped(b, n), mapped(b, n)
			b.SetBytes(int64(n))
			for b.Loop() {
				Place(unsafe.Pointer(&dst[0]), unsafe.Pointer(&src[0]), uint64(n))
			}
		})
	}
}
