package group

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/fabric"
)

// A naive message:
//
//	0  1  kind          16  8  offset      40  8  old
//	1  1  durable       24  8  source      48  8  new
//	2  1  execute map   32  8  bytes       56     result map, then data
//	8  8  number
const headerBytes = 56

func (s Spec) encode(to []byte, seq uint64, o *operation) int {
	le := binary.LittleEndian
	clear(to[:headerBytes+s.foundBytes()])
	to[0], to[2] = byte(o.kind), byte(o.execute)
	if o.durable {
		to[1] = 1
	}
	for i, v := range [...]uint64{seq, o.off, o.src, o.n, o.old, o.new} {
		le.PutUint64(to[8+8*i:], v)
	}
	n := headerBytes + s.foundBytes()
	return n + copy(to[n:], o.data)
}

func (s Spec) decode(from []byte) (seq uint64, o operation, err error) {
	if len(from) < headerBytes+s.foundBytes() {
		return 0, o, fmt.Errorf("%w: a message of %d bytes is too short", ErrRefused, len(from))
	}
	le := binary.LittleEndian
	o = operation{
		kind: kind(from[0]), durable: from[1] == 1, execute: Map(from[2]),
		off: le.Uint64(from[16:]), src: le.Uint64(from[24:]), n: le.Uint64(from[32:]),
		old: le.Uint64(from[40:]), new: le.Uint64(from[48:]), data: from[headerBytes+s.foundBytes():],
	}
	return le.Uint64(from[8:]), o, nil
}

// obey executes the next message and passes it on, by the replica's processor.
func (p *part) obey(bytes uint32) error {
	at := p.stageAt(p.execute)
	p.execute++
	message := p.stage.Bytes()[at:][:bytes]
	seq, o, err := p.spec.decode(message)
	if err != nil {
		return err
	}
	found := message[headerBytes+p.index*wordBytes:][:wordBytes]
	if err := execute(p.mem.Bytes(), &o, p.index, found); err != nil {
		return err
	}
	if p.index < p.spec.Replicas-1 {
		return p.down.Post(fabric.Send(p.slots.Piece(at, bytes)).Signal(0))
	}
	answer := p.ack.At(seq % uint64(p.spec.Window) * uint64(p.spec.ackBytes()))
	result := p.slots.Piece(at+headerBytes, uint32(p.spec.foundBytes()))
	return p.down.Post(fabric.WriteImm(answer, uint32(seq), result).Signal(0))
}

var errOutside = fmt.Errorf("%w: a message names memory outside of the replica's", ErrRefused)

// execute does an operation to memory as replica i.
func execute(mem []byte, o *operation, i int, found []byte) error {
	if !within(mem, o.off, o.n) || o.kind == gCopy && !within(mem, o.src, o.n) {
		return errOutside
	}
	switch {
	case o.kind == gWrite && uint64(len(o.data)) == o.n:
		copy(mem[o.off:], o.data)
	case o.kind == gCopy:
		copy(mem[o.off:o.off+o.n], mem[o.src:o.src+o.n])
	case o.kind == gCAS && o.n == wordBytes && o.off%wordBytes == 0:
		if o.execute.Has(i) {
			binary.LittleEndian.PutUint64(found, compareAndSwap(mem, o))
		}
	case o.kind != gFlush:
		return fmt.Errorf("%w: a message makes no sense: operation %d of %d bytes", ErrRefused, o.kind, o.n)
	}
	if !o.durable {
		return nil
	}
	from := o.off &^ uint64(os.Getpagesize()-1)
	return unix.Msync(mem[from:o.off+o.n], unix.MS_SYNC)
}

func within(mem []byte, off, n uint64) bool {
	size := uint64(len(mem))
	return n > 0 && off <= size && n <= size-off
}

// compareAndSwap is atomic towards NICs of this machine, as theirs are.
func compareAndSwap(mem []byte, o *operation) (found uint64) {
	word := (*uint64)(unsafe.Pointer(&mem[o.off]))
	for {
		found = atomic.LoadUint64(word)
		if found != o.old || atomic.CompareAndSwapUint64(word, o.old, o.new) {
			return found
		}
	}
}
