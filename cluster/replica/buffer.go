package replica

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/ring"
	"github.com/ostrodb/ostro/internal/background"
)

// buffer is a file, mapped, that holds one open or just closed replica.
//
// Who owns which bytes when: the NIC may write to the data while a replica is
// open, and nobody else may but Append, under the same key. From the revocation of
// the key on they are constant; when no replica has the buffer any more and
// its readers are gone, they belong to the sweeper, which makes them zero.
type buffer struct {
	path   string
	file   *os.File
	mem    *fabric.Memory
	header bufferHeader // as stored last

	// inherited says that the buffer was in use when this process began. A NIC may not
	// have noticed yet that the process before is gone. So when its
	// replica ends the file goes, too, and a late write with it.
	inherited bool
	// readers hold it shared; they enter under the lock of the log whose replica
	// has the buffer.
	readers sync.RWMutex
}

// zeroStep is how many bytes are cleared at a time: a large clear would hold up
// the collector, and all others with it.
const zeroStep = 64 << 10

// populateStep is how many bytes are asked for at a time: the kernel holds the
// address space's lock meanwhile.
const populateStep = background.Piece

// createBuffer makes a file of zeroes on the disk and in memory, and may rest between two pieces.
func createBuffer(path string, segmentBytes uint32, between func()) (*buffer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create a buffer: %w", err)
	}
	b := &buffer{path: path, file: f}
	err = reserve(f, dataOffset+int64(segmentBytes))
	if err == nil {
		err = b.mapData(segmentBytes)
	}
	if err == nil {
		b.populate(between)
		err = b.store(bufferHeader{state: bufferFree, segmentBytes: segmentBytes}, true)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create a buffer: %w", err), b.discard())
	}
	return b, nil
}

// reserve allocates zeroes, so that a full disk is found now and not by a
// fault under somebody's write. File systems that cannot get them written.
func reserve(f *os.File, bytes int64) error {
	err := error(unix.EINTR)
	for err == unix.EINTR {
		err = unix.Fallocate(int(f.Fd()), 0, 0, bytes)
	}
	if err != unix.EOPNOTSUPP && err != unix.ENOSYS {
		return err
	}
	zeroes := make([]byte, copyStep)
	for at := int64(0); at < bytes; at += copyStep {
		if _, err := f.WriteAt(zeroes[:min(copyStep, bytes-at)], at); err != nil {
			return err
		}
	}
	return nil
}

// openBuffer maps a file that an earlier process left. ok is false if it is none.
func openBuffer(path string) (b *buffer, ok bool, err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, false, err
	}
	h, ok := readHeader(f)
	if !ok {
		return nil, false, f.Close()
	}
	b = &buffer{path: path, file: f, header: h, inherited: h.state.inUse()}
	if err := b.mapData(h.segmentBytes); err != nil {
		return nil, false, errors.Join(err, f.Close())
	}
	return b, true, nil
}

func (b *buffer) mapData(bytes uint32) (err error) {
	if b.mem, err = fabric.MapFile(b.file, dataOffset, int(bytes)); err == nil {
		b.mem.PreferLarge()
	}
	return err
}

func (b *buffer) data() []byte { return b.mem.Bytes() }

// store writes a header over the older one of the two. With sync the
// whole file is on the medium when it returns.
func (b *buffer) store(h bufferHeader, sync bool) error {
	h.number = b.header.number + 1
	if h.segmentBytes == 0 {
		h.segmentBytes = b.header.segmentBytes
	}
	if _, err := b.file.WriteAt(h.encode(), int64(h.number%2)*slotStride); err != nil {
		return fmt.Errorf("store the header of %s: %w", b.path, err)
	}
	b.header = h
	if !sync {
		return nil
	}
	if err := unix.Fdatasync(int(b.file.Fd())); err != nil {
		return fmt.Errorf("sync %s: %w", b.path, err)
	}
	return nil
}

// zero makes all of the data zeroes that the disk has promised room for, and
// nothing of it is left to be written there.
func (b *buffer) zero(between func()) error {
	fd, n := int(b.file.Fd()), int64(len(b.data()))
	err := punch(fd, dataOffset, n, between)
	if err == nil {
		err = reserve(b.file, dataOffset+n)
	}
	switch err {
	case nil:
		b.populate(between)
	case unix.EOPNOTSUPP, unix.ENOSYS, unix.EINTR:
		b.clear()
		err = nil
	}
	return err
}

// punch takes n bytes of a file away, piece by piece.
func punch(fd int, from, n int64, between func()) (err error) {
	for at := int64(0); at < n && err == nil; at += 4 * background.Piece {
		err = unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, from+at, min(4*background.Piece, n-at))
		between()
	}
	return err
}

// populate brings the pages of a buffer of zeroes into memory, so that a NIC meets no
// cold one. Systems that cannot do that find them on the way.
func (b *buffer) populate(between func()) {
	data := b.data()
	for at := 0; at < len(data); at += populateStep {
		if unix.Madvise(data[at:min(at+populateStep, len(data))], unix.MADV_POPULATE_READ) != nil {
			return
		}
		if at%(4*populateStep) == 0 {
			between()
		}
	}
}

// clear writes zeroes over the data.
func (b *buffer) clear() {
	data := b.data()
	for at := 0; at < len(data); at += zeroStep {
		clear(data[at:min(at+zeroStep, len(data))])
	}
}

// place copies bytes as a NIC does: in order, the last one last.
func (b *buffer) place(off uint32, bytes []byte) {
	if len(bytes) > 0 {
		ring.Place(unsafe.Pointer(&b.data()[off]), unsafe.Pointer(&bytes[0]), uint64(len(bytes)))
	}
}

// copyOut copies the first n bytes, that others may be writing to.
func (b *buffer) copyOut(into []byte, n int) []byte {
	if cap(into) < n {
		into = make([]byte, n)
	}
	into = into[:n]
	for at := 0; at < n; at += zeroStep {
		copy(into[at:min(at+zeroStep, n)], b.data()[at:])
	}
	return into
}

// unmap gives the memory back; the file stays.
func (b *buffer) unmap() error {
	if b.mem == nil {
		return b.file.Close()
	}
	return errors.Join(b.mem.Close(), b.file.Close())
}

// discard removes the file, too.
func (b *buffer) discard() error { return errors.Join(b.unmap(), os.Remove(b.path)) }
