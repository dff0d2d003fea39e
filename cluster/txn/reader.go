package txn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/ostrodb/ostro/cluster/group"
	"github.com/ostrodb/ostro/fabric"
)

// ErrNotServing says that a replica is in no group: its memory may be old.
var ErrNotServing = errors.New("txn: the replica is in no group; read from another")

// Reader is how the program of a replica reads its own memory. Its locks are
// words that the NIC swaps, too: the client's writers and this program's readers
// exclude each other. Its methods may be called by many goroutines at once.
type Reader struct {
	replica *group.Replica
	mem     []byte
}

// NewReader reads the memory that a replica lends to its group.
func NewReader(r *group.Replica, mem *fabric.Memory) *Reader {
	return &Reader{replica: r, mem: mem.Bytes()}
}

// View runs fn with locks held for reading, on the data area itself. What fn sees
// there, of the data that the locks stand for, is of one moment and has all
// transactions whose Update had returned before. It must not keep the slice, nor write to it.
//
// If the group is recovered meanwhile, what fn saw is void: fn is called again,
// and only its last call counts. While recovery goes on, View waits.
func (r *Reader) View(ctx context.Context, locks []int, fn func(data []byte) error) error {
	var b backoff
	for {
		v, err := r.begin(ctx, &b)
		if err != nil {
			return err
		}
		done, err := v.run(ctx, ascending(locks), fn)
		if done {
			return err
		}
		if err := b.wait(ctx); err != nil {
			return err
		}
	}
}

// visit is one try of a View, in one epoch.
type visit struct {
	*Reader
	layout layout
	number uint64 // of the replica's part in the group
	epoch  uint64
	held   []int
}

// begin waits until the gate is open. One that was open in another group is not:
// that may have gone on without this replica.
func (r *Reader) begin(ctx context.Context, b *backoff) (*visit, error) {
	for {
		number, alive := r.replica.Membership()
		if number == 0 {
			return nil, ErrNotServing
		}
		if alive && atomic.LoadUint64(r.word(gateAt)) == number {
			l, formatted, err := parse(r.mem[:controlBytes])
			if err == nil && formatted && l.memory == uint64(len(r.mem)) {
				return &visit{Reader: r, layout: l, number: number, epoch: atomic.LoadUint64(r.word(epochAt))}, nil
			}
		}
		if err := b.wait(ctx); err != nil {
			return nil, fmt.Errorf("txn: wait for the group to be initialized: %w", err)
		}
	}
}

func (r *Reader) word(off uint64) *uint64 { return (*uint64)(unsafe.Pointer(&r.mem[off])) }

// valid tells whether nothing but this epoch's client has changed the memory.
func (v *visit) valid() bool {
	number, alive := v.replica.Membership()
	return alive && number == v.number && atomic.LoadUint64(v.word(gateAt)) == number &&
		atomic.LoadUint64(v.word(epochAt)) == v.epoch // Else the gate was shut and opened meanwhile.
}

// run tells whether its result counts.
func (v *visit) run(ctx context.Context, locks []int, fn func(data []byte) error) (done bool, err error) {
	defer v.release() // Again, if fn panics.
	for _, lock := range locks {
		if lock < 0 || lock >= v.layout.locks {
			return true, fmt.Errorf("%w: lock %d of %d", ErrRefused, lock, v.layout.locks)
		}
		ok, err := v.lock(ctx, lock)
		if err != nil || !ok {
			return err != nil, err
		}
	}
	if !v.valid() {
		return false, nil
	}
	err = fn(v.mem[v.layout.data():])
	v.release()
	return v.valid(), err
}

// lock counts one reader more; false is for a word of another epoch.
func (v *visit) lock(ctx context.Context, lock int) (bool, error) {
	at := v.word(v.layout.lock(lock))
	var b backoff
	for {
		word := atomic.LoadUint64(at)
		switch {
		case !sameGeneration(word, v.epoch) || !v.valid():
			return false, nil
		case shut(word):
			if err := b.wait(ctx); err != nil {
				return false, fmt.Errorf("txn: lock %d for reading: %w", lock, err)
			}
		case atomic.CompareAndSwapUint64(at, word, word+1):
			v.held = append(v.held, lock)
			return true, nil
		}
	}
}

// release counts one reader less, where the word is still of this epoch.
func (v *visit) release() {
	for _, lock := range slices.Backward(v.held) {
		at := v.word(v.layout.lock(lock))
		for {
			word := atomic.LoadUint64(at)
			if !sameGeneration(word, v.epoch) || atomic.CompareAndSwapUint64(at, word, word-1) {
				break
			}
		}
	}
	v.held = nil
}
