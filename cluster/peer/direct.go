package peer

import (
	"net"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// direct writes pieces to a TCP connection from where they lie, as far as it takes them without waiting for the other
// side. It is for one goroutine at a time.
type direct struct {
	raw     syscall.RawConn
	attempt func(fd uintptr) bool // try, made once
	left    [][]byte
	vector  []unix.Iovec
	failed  error
}

// newDirect is nil for connections that are not plain TCP.
func newDirect(c net.Conn) *direct {
	t := plainTCP(c)
	if t == nil {
		return nil
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return nil
	}
	d := &direct{raw: raw}
	d.attempt = d.try
	return d
}

// write returns what the connection did not take, in the memory of pieces.
func (d *direct) write(pieces [][]byte) (left [][]byte, err error) {
	d.left, d.failed = pieces, nil
	if err = d.raw.Write(d.attempt); err == nil {
		err = d.failed
	}
	left, d.left = d.left, nil
	return left, err
}

// try writes until the connection is full. It is always true: nobody is to wait.
func (d *direct) try(fd uintptr) bool {
	for len(d.left) > 0 {
		n, errno := d.writev(fd)
		switch errno {
		case 0:
			d.left = after(d.left, n)
		case unix.EINTR:
		case unix.EAGAIN:
			return true
		default:
			d.failed = os.NewSyscallError("writev", errno)
			return true
		}
	}
	return true
}

// mostPieces is what the system takes with one call.
const mostPieces = 1024

func (d *direct) writev(fd uintptr) (int, syscall.Errno) {
	d.vector = d.vector[:0]
	for _, p := range d.left[:min(len(d.left), mostPieces)] {
		v := unix.Iovec{Base: unsafe.SliceData(p)}
		v.SetLen(len(p))
		d.vector = append(d.vector, v)
	}
	n, _, errno := unix.Syscall(unix.SYS_WRITEV, fd, uintptr(unsafe.Pointer(unsafe.SliceData(d.vector))), uintptr(len(d.vector)))
	clear(d.vector)
	return int(n), errno
}

// after is pieces without their first n bytes.
func after(pieces [][]byte, n int) [][]byte {
	for len(pieces) > 0 && n >= len(pieces[0]) {
		n -= len(pieces[0])
		pieces = pieces[1:]
	}
	if n > 0 {
		pieces[0] = pieces[0][n:]
	}
	return pieces
}
