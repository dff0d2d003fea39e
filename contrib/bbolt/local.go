package ostrobbolt

import (
	"errors"
	"fmt"
	"os"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

// local is the front end's own copy of the database: a file in memory that bbolt
// works on, and a view of its bytes. It is gone with the process, and made anew
// from a replica.
type local struct {
	file  *os.File
	bytes []byte // only as far as bbolt has written may be read
}

// newLocal makes a file in memory that may grow to a size, and begins with content.
func newLocal(limit int, content []byte) (*local, error) {
	fd, err := unix.MemfdCreate("ostro-bbolt", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("bbolt: create a file in memory: %w", err)
	}
	l := &local{file: os.NewFile(uintptr(fd), "bbolt")}
	if _, err := l.file.WriteAt(content, 0); err != nil {
		return nil, errors.Join(fmt.Errorf("bbolt: fill a file in memory: %w", err), l.close())
	}
	if l.bytes, err = unix.Mmap(fd, 0, limit, unix.PROT_READ, unix.MAP_SHARED); err != nil {
		return nil, errors.Join(fmt.Errorf("bbolt: map a file in memory: %w", err), l.close())
	}
	return l, nil
}

// open opens the database. It never grows beyond the limit, for replicas cannot;
// it does not sync, for replicas do; and it writes its list of free pages, for
// the tracker reads it.
func (l *local) open(pageBytes int) (*bbolt.DB, error) {
	db, err := bbolt.Open(l.file.Name(), 0o600, &bbolt.Options{
		OpenFile: func(string, int, os.FileMode) (*os.File, error) { return l.again() },
		PageSize: pageBytes, MaxSize: len(l.bytes), InitialMmapSize: len(l.bytes),
		NoSync: true, NoGrowSync: true, FreelistType: bbolt.FreelistMapType,
	})
	if err != nil {
		return nil, fmt.Errorf("bbolt: open the front end's copy: %w", err)
	}
	db.AllocSize = 0 // room ahead of need would count against MaxSize
	return db, nil
}

func (l *local) again() (*os.File, error) {
	fd, err := unix.FcntlInt(l.file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), l.file.Name()), nil
}

func (l *local) close() error {
	var err error
	if l.bytes != nil {
		err = unix.Munmap(l.bytes)
		l.bytes = nil
	}
	return errors.Join(err, l.file.Close())
}
