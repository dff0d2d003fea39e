package prefetch

import (
	"testing"
	"unsafe"
)

func TestPrefetchLeavesMemoryAsItWas(t *testing.T) {
	lines := make([]uint64, 64)
	for i := range lines {
		lines[i] = uint64(i)
		T0(unsafe.Pointer(&lines[i]))
	}
	Lines(unsafe.Pointer(&lines[0]), len(lines)*8/line)
	for i, v := range lines {
		if v != uint64(i) {
			t.Fatalf("word %d became %d", i, v)
		}
	}
}
