package group

import (
	"errors"

	"github.com/ostrodb/ostro/fabric"
)

// fanOut is the way without chains: the client posts each operation on a queue
// pair per replica. A copy goes through the client, for no NIC copies
// within a peer's memory.
type fanOut struct {
	*client
	done  [MaxReplicas]uint64 // operations that each replica has ended
	ended uint64              // by all
}

func (f *fanOut) start(seq uint64, o *operation) error {
	copy(f.mem.Bytes()[f.messageAt(seq):], o.data)
	clear(f.mem.Bytes()[f.answerAt(seq):][:f.spec.ackBytes()])
	for i := range f.offers {
		if err := f.drive(i, seq, o); err != nil {
			return err
		}
	}
	return nil
}

// drive posts what makes replica i execute the operation; its last request tells of the end.
func (f *fanOut) drive(i int, seq uint64, o *operation) error {
	q, at := f.drives[i], f.offers[i].Data.At(o.off)
	last := fabric.Nop()
	switch {
	case o.kind == gWrite:
		last = fabric.Write(at, f.reg.Piece(f.messageAt(seq), uint32(o.n)))
	case o.kind == gCAS && o.execute.Has(i):
		last = fabric.CAS(at, o.old, o.new, f.reg.Piece(f.answerAt(seq)+uint64(i*wordBytes), wordBytes))
	case o.kind == gCopy:
		if err := f.through(i, o); err != nil {
			return err
		}
	}
	if o.durable {
		if err := f.post(q, last); err != nil {
			return err
		}
		last = fabric.Flush(at, uint32(o.n), f.persist)
	}
	return f.post(q, last.Signal(seq))
}

// through copies by way of the client, a buffer at a time. Every request waits
// for the one before: the buffer is the same.
func (f *fanOut) through(i int, o *operation) error {
	q, data, step := f.drives[i], f.offers[i].Data, uint64(f.spec.MaxWrite)
	buffer := uint64(f.spec.Window*(f.spec.ackBytes()+f.spec.stageBytes())) + uint64(i)*step
	for at := uint64(0); at < o.n; at += step {
		piece := f.reg.Piece(buffer, uint32(min(step, o.n-at)))
		err := f.post(q, fabric.Read(data.At(o.src+at), piece).Fence(), fabric.Write(data.At(o.off+at), piece).Fence())
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *fanOut) take(done fabric.Completion, ended func(uint64, [MaxReplicas]uint64) error) error {
	i := find(f.drives, done.QP)
	if i < 0 || done.Op == fabric.OpRecv {
		return errors.New("a message came where none is due")
	}
	f.done[i]++
	for f.endedByAll() {
		if err := ended(f.ended, f.found(f.ended)); err != nil {
			return err
		}
		f.ended++
	}
	return nil
}

// endedByAll tells whether no replica is still at the oldest operation.
func (f *fanOut) endedByAll() bool {
	for i := range f.offers {
		if f.done[i] <= f.ended {
			return false
		}
	}
	return true
}
