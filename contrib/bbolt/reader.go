package ostrobbolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"unsafe"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/cluster/group"
	"github.com/ostrodb/ostro/cluster/txn"
	"github.com/ostrodb/ostro/fabric"
)

// ErrNoDatabase says that no front end has made the database yet.
var ErrNoDatabase = errors.New("bbolt: there is no database yet; open it at a front end first")

// Reader reads the database in the memory of a replica, in the replica's own
// process: every commit that was acknowledged before, with no copy made. Its
// methods may be called by many goroutines at once.
type Reader struct {
	txn  *txn.Reader
	mem  *fabric.Memory
	lock int

	mu   sync.Mutex
	bolt *bbolt.DB // opened by the first View
}

// NewReader reads the memory that a replica lends to its group. The lock is that of
// the front end's Options.
func NewReader(r *group.Replica, mem *fabric.Memory, lock int) *Reader {
	return &Reader{txn: txn.NewReader(r, mem), mem: mem, lock: lock}
}

// View runs fn in a transaction that reads. It holds the database's lock for reading on this
// replica, so that commits wait meanwhile: be brief. If the group is
// recovered meanwhile, what fn has read is void and it is called again.
func (r *Reader) View(ctx context.Context, fn func(tx *bbolt.Tx) error) error {
	var panicked any
	err := r.txn.View(ctx, []int{r.lock}, func(data []byte) error {
		panicked = nil
		return r.guarded(data, fn, &panicked)
	})
	if panicked != nil {
		panic(panicked)
	}
	return err
}

// guarded runs fn and keeps a panic of it, for txn to say whether it counts: in
// the middle of a recovery there may be no database for bbolt to find its way in.
func (r *Reader) guarded(data []byte, fn func(*bbolt.Tx) error, panicked *any) error {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { *panicked = recover() }()
	db, err := r.open(data)
	if err != nil {
		return err
	}
	return db.View(fn)
}

// open opens a bbolt in place. bbolt maps a file from its start, and the data area
// is somewhere in the replica's file. So it gets a blank file of the right size with
// the meta pages, to find its size of pages, and the data area is mapped over what it mapped.
func (r *Reader) open(data []byte) (*bbolt.DB, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bolt != nil {
		return r.bolt, nil
	}
	m, ok := parseMeta(data)
	if !ok {
		return nil, ErrNoDatabase
	}
	stand, err := standIn(data, 2*m.pageBytes)
	if err != nil {
		return nil, err
	}
	db, err := bbolt.Open(stand.Name(), 0o600, &bbolt.Options{
		OpenFile: func(string, int, os.FileMode) (*os.File, error) { return stand, nil },
		ReadOnly: true,
	})
	if err != nil {
		return nil, fmt.Errorf("bbolt: open a replica's database: %w", err)
	}
	if err := r.mapOver(db, data); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	r.bolt = db
	return db, nil
}

// standIn is a file as long as the data area that holds its first bytes only.
func standIn(data []byte, n uint64) (*os.File, error) {
	fd, err := unix.MemfdCreate("ostro-bbolt-reader", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("bbolt: create a file in memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), "bbolt")
	_, err = f.WriteAt(data[:n], 0)
	if err = errors.Join(err, f.Truncate(int64(len(data)))); err != nil {
		return nil, errors.Join(fmt.Errorf("bbolt: fill a file in memory: %w", err), f.Close())
	}
	return f, nil
}

// mapOver maps the data area, to be read only, to where bbolt looks for its file. bbolt's
// mapping is at least as long, and when it unmaps it, this one goes with it.
func (r *Reader) mapOver(db *bbolt.DB, data []byte) error {
	within := uintptr(unsafe.Pointer(&data[0])) - uintptr(unsafe.Pointer(&r.mem.Bytes()[0]))
	_, _, errno := unix.Syscall6(unix.SYS_MMAP, db.Info().Data, uintptr(len(data)), unix.PROT_READ,
		unix.MAP_SHARED|unix.MAP_FIXED, r.mem.File().Fd(), uintptr(r.mem.Offset())+within)
	if errno != 0 {
		return fmt.Errorf("bbolt: map a replica's data area: %w", errno)
	}
	return nil
}

// Close waits for transactions that are open. The replica's memory is left alone.
func (r *Reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bolt == nil {
		return nil
	}
	err := r.bolt.Close()
	r.bolt = nil
	return err
}
