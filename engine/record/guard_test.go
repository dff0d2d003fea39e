//go:build unix

package record

import (
	"runtime/debug"
	"sync"
	"syscall"
	"testing"
)

// guarded is memory with an unreadable page behind it, so that a read outside
// of what lies at its end is a fault and not luck.
var guarded = sync.OnceValues(func() ([]byte, error) {
	const room, page = 1 << 21, 1 << 16
	b, err := syscall.Mmap(-1, 0, room+page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	return b[:room:room], syscall.Mprotect(b[room:], syscall.PROT_NONE)
})

// atTheEndOfMemory returns a copy of b that no readable byte follows.
func atTheEndOfMemory(t *testing.T, b []byte) []byte {
	t.Helper()
	memory, err := guarded()
	if err != nil {
		t.Fatal(err)
	}
	if len(b) > len(memory) {
		return b
	}
	restore := debug.SetPanicOnFault(true)
	t.Cleanup(func() { debug.SetPanicOnFault(restore) })
	end := memory[len(memory)-len(b):]
	copy(end, b)
	return end
}

func TestReadingOutsideOfGuardedMemoryFaults(t *testing.T) {
	b := atTheEndOfMemory(t, []byte("12345678"))
	defer func() {
		if recover() == nil {
			t.Error("read beyond the end")
		}
	}()
	_ = PtrOf(b).Version() + 1
}

func TestCRC16ReadsNothingOutsideOfItsKey(t *testing.T) {
	r := seeded(t)
	for n := range 1200 {
		if b := atTheEndOfMemory(t, randomBytes(r, n)); crc16(b) != slowCRC16(b) {
			t.Fatalf("crc16 of %d bytes at the end of memory is %#x, want %#x", n, crc16(b), slowCRC16(b))
		}
	}
}
