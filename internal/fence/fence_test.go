package fence

import (
	"runtime"
	"sync/atomic"
	"testing"
)

func TestWhoSeesTheWordSeesWhatWasWrittenBefore(t *testing.T) {
	var data, turn uint64
	const rounds = 20_000
	done := make(chan uint64)
	go func() {
		wrong := uint64(0)
		for n := uint64(1); n <= rounds; n++ {
			for atomic.LoadUint64(&turn) != 2*n-1 {
				runtime.Gosched()
			}
			if atomic.LoadUint64(&data) != n {
				wrong++
			}
			Publish(&turn, 2*n)
		}
		done <- wrong
	}()
	for n := uint64(1); n <= rounds; n++ {
		atomic.StoreUint64(&data, n)
		Publish(&turn, 2*n-1)
		for atomic.LoadUint64(&turn) != 2*n {
			runtime.Gosched()
		}
	}
	if wrong := <-done; wrong != 0 {
		t.Fatalf("%d of %d stores were seen before what preceded them", wrong, rounds)
	}
}
