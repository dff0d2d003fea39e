package migrate

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// bell wakes one who waits for it in the kernel, on its thread. That costs much less than to wake a goroutine: no thread has to be found
// for that, which looks for others to run, and nor has the next to look for nothing. One listens at a time; anybody rings.
//
// It is not to be relied upon: who listens does so for a while, and then waits in another way.
type bell struct {
	listening atomic.Bool

	mu   sync.Mutex
	fd   int // an eventfd
	hung bool
}

// hang makes the bell. Until then, and if it cannot be made, it is not listened to.
func (b *bell) hang() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.hung {
		var err error
		b.fd, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
		b.hung = err == nil
	}
}

// listenMillis is for how long somebody listens at the most. The scheduler leaves a thread its processor for longer than that, while others
// are free, as there are with the number of them that a server sets.
const listenMillis = 5

// listen returns when somebody rings, which it tells, or after a while, or at once if unless says so: which is asked when all who
// ring from then on are heard.
func (b *bell) listen(unless func() bool) (rung bool) {
	b.listening.Store(true)
	defer b.listening.Store(false)
	if !b.hung || unless() {
		return false
	}
	on := [1]unix.PollFd{{Fd: int32(b.fd), Events: unix.POLLIN}}
	n, _ := unix.Poll(on[:], listenMillis)
	if n > 0 {
		var count [8]byte
		_, _ = unix.Read(b.fd, count[:])
	}
	return n > 0
}

// ring is heard by who listens, if anybody does.
func (b *bell) ring() {
	if !b.listening.Load() || !b.listening.CompareAndSwap(true, false) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hung {
		var one [8]byte
		binary.NativeEndian.PutUint64(one[:], 1)
		_, _ = unix.Write(b.fd, one[:])
	}
}

// takeDown ends it. Nobody may listen any more, and who rings is not heard.
func (b *bell) takeDown() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hung {
		_ = unix.Close(b.fd)
		b.hung = false
	}
}
