package ring

import (
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxSleep bounds a sleep, in case the process that should wake is gone.
const maxSleep = 100 * time.Millisecond

const (
	futexWait = 0
	futexWake = 1
)

// sleep waits on a shared word while it has the value, and no longer than limit.
// It may return for no reason. It is false if the time was over.
func sleep(word *atomic.Uint32, value uint32, limit time.Duration) bool {
	ts := unix.NsecToTimespec(int64(limit))
	_, _, errno := unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWait, uintptr(value), uintptr(unsafe.Pointer(&ts)), 0, 0)
	return errno != unix.ETIMEDOUT
}

// wake ends all sleeps on the word, in every process.
func wake(word *atomic.Uint32) {
	const all = 1<<31 - 1
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, all, 0, 0, 0)
}

// NewEvent makes an event that wakes a sleeping NIC.
func NewEvent() (int, error) { return unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK) }

var one = [8]byte{1}

// Signal sets off an event.
func Signal(event int) { _, _ = unix.Write(event, one[:]) }
