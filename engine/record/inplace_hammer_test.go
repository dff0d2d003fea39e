package record_test

import (
	"bytes"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/engine/record"
)

// TestACopyWhoseVersionIsUnchangedIsWhole changes a value of equal bytes in place
// under the eyes of readers. What it finds depends on the processor: amd64
// forgives missing fences, arm64 does not.
func TestACopyWhoseVersionIsUnchangedIsWhole(t *testing.T) {
	// Outside the Go heap, as in a log: the race detector takes no interest.
	room, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(room)
	const size, changes = 300, 200_000
	record.Encode(room, &record.Header{Type: record.TypePut, Version: 1}, []byte("key"), make([]byte, size), false)
	p := record.PtrOf(room)
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			copied := make([]byte, size)
			for {
				select {
				case <-done:
					return
				default:
				}
				version := p.Version()
				if version&record.VersionLock != 0 {
					continue
				}
				copy(copied, p.Value())
				if p.Unchanged(version) && bytes.Count(copied, copied[:1]) != size {
					t.Errorf("version %d is torn: %x", version, copied)
					return
				}
			}
		})
	}
	value := make([]byte, size)
	for version := uint64(1); version < changes; version++ {
		for i := range value {
			value[i] = byte(version)
		}
		if !p.LockVersion(version) {
			t.Fatal("somebody else locks")
		}
		p.Rewrite(value, 0)
		p.UnlockVersion(version + 1)
	}
	close(done)
	readers.Wait()
}
