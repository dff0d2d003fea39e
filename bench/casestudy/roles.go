package casestudy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/ostrodb/ostro/cluster/group"
	"github.com/ostrodb/ostro/cluster/txn"
	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/nic"
	"github.com/ostrodb/ostro/fabric/shm"
)

// Place is where the processes of a cluster find each other, and what they keep.
//
//	DIR/nic.sock          the NIC
//	DIR/replica-0.sock    a replica's control connections, and -extra for the study's own
//	DIR/replica-0/        its files; its memory is one of them
//	DIR/front/            the front end's, worth nothing without it
type Place struct {
	Dir      string
	Replicas int
	Memory   uint64
	Log      uint64
	Mode     group.Mode
}

func (p Place) nic() string         { return filepath.Join(p.Dir, "nic.sock") }
func (p Place) socket(i int) string { return filepath.Join(p.Dir, fmt.Sprintf("replica-%d.sock", i)) }

func (p Place) extraSocket(i int) string {
	return filepath.Join(p.Dir, fmt.Sprintf("replica-%d-extra.sock", i))
}
func (p Place) directory(i int) string { return filepath.Join(p.Dir, fmt.Sprintf("replica-%d", i)) }
func (p Place) front() string          { return filepath.Join(p.Dir, "front") }

// beNIC serves until its parent is gone.
func beNIC(o order) error {
	e, err := nic.New(nic.Config{Spin: 50 * time.Microsecond, RealTime: o.Priority})
	if err != nil {
		return err
	}
	if _, err := shm.Serve(o.Place.nic(), e, nil); err != nil {
		return err
	}
	ready()
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// beReplica lends memory that lies in a file, until its parent is gone.
func beReplica(s Study, o order) error {
	dir := o.Place.directory(o.Index)
	mem, err := mapMemory(dir, o.Place.Memory)
	if err != nil {
		return err
	}
	dev, err := shm.Open(o.Place.nic(), fmt.Sprintf("replica-%d-%d", o.Index, os.Getpid()))
	if err != nil {
		return err
	}
	r := group.NewReplica(dev, mem)
	if s.Replica != nil {
		socket := o.Place.extraSocket(o.Index)
		_ = os.Remove(socket) // Of the process before, which is gone.
		if err := s.Replica(Replica{Group: r, Memory: mem, Dir: dir, Socket: socket}); err != nil {
			return err
		}
	}
	if _, err := group.Serve("unix://"+o.Place.socket(o.Index), r, group.ServeOptions{}); err != nil {
		return err
	}
	ready()
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func mapMemory(dir string, bytes uint64) (*fabric.Memory, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "memory"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(int64(bytes)); err != nil {
		return nil, err
	}
	return fabric.MapFile(f, 0, int(bytes))
}

// beBusy computes without end.
func beBusy() {
	runtime.LockOSThread()
	ready()
	for n := uint64(1); ; n = n*6364136223846793005 + 1 {
		if n == 0 { // Once in 2^64 rounds: keeps the loop from being left out.
			fmt.Println()
		}
	}
}

// spec has many slots, so that replicas whose programs wait for a processor for long still
// have requests posted; and short messages, for slots times bytes is replicas' memory.
func (p Place) spec() group.Spec {
	return group.Spec{Mode: p.Mode, Window: 64, Slots: 4096, MaxWrite: 8 << 10, Patience: time.Minute, Misses: 120}
}

// front is a database, open at a front end, and what it stands on.
type front struct {
	Database
	dev     fabric.Device
	group   *group.Group
	log     *txn.Log
	members []*group.Remote
}

// openFront connects with the replicas and opens the database from one of them.
func openFront(ctx context.Context, s Study, p Place, source int) (_ *front, err error) {
	f := &front{}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	if f.dev, err = shm.Open(p.nic(), fmt.Sprintf("front-%d", os.Getpid())); err != nil {
		return nil, err
	}
	var members []group.Member
	var extra []string
	for i := range p.Replicas {
		m, err := group.Dial(ctx, "unix://"+p.socket(i), group.DialOptions{Name: f.dev.Name()})
		if err != nil {
			return nil, err
		}
		f.members, members, extra = append(f.members, m), append(members, m), append(extra, p.extraSocket(i))
		if err := m.Leave(ctx); err != nil { // It fences the front end before, which may not know that it is dead.
			return nil, err
		}
	}
	if f.group, err = group.Open(ctx, f.dev, p.spec(), members...); err != nil {
		return nil, err
	}
	if f.log, err = txn.Initialize(ctx, f.group, txn.Config{LogBytes: p.Log, Background: true}); err != nil {
		return nil, err
	}
	f.Database, err = s.Open(ctx, Front{Log: f.log, Sockets: extra, Dir: p.front(), Source: source})
	return f, err
}

// Close ends the front end in order.
func (f *front) Close() error {
	var errs []error
	if f.Database != nil {
		errs = append(errs, f.Database.Close())
	}
	if f.log != nil {
		errs = append(errs, f.log.Close())
	}
	if f.group != nil {
		errs = append(errs, f.group.Close())
	}
	for _, m := range f.members {
		errs = append(errs, m.Close())
	}
	if f.dev != nil {
		errs = append(errs, f.dev.Close())
	}
	return errors.Join(errs...)
}
