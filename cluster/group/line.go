package group

import (
	"fmt"

	"github.com/ostrodb/ostro/fabric"
)

// line is the way down a chain, by NICs or naive: a message to the first replica,
// an answer from the last.
type line struct {
	*client
	answered uint64
}

func (l *line) start(seq uint64, o *operation) error {
	at := l.messageAt(seq)
	to := l.mem.Bytes()[at:][:l.spec.stageBytes()]
	n := 0
	if l.spec.Mode == Chain {
		n = l.describe(to, seq, o)
	} else {
		n = l.spec.encode(to, seq, o)
	}
	return l.post(l.out, fabric.Send(l.reg.Piece(at, uint32(n))))
}

func (l *line) take(done fabric.Completion, ended func(uint64, [MaxReplicas]uint64) error) error {
	if done.Op != fabric.OpRecv {
		return nil
	}
	seq := l.answered
	if done.QP != l.ack.Number() || !done.HasImm || done.Imm != uint32(seq) {
		return fmt.Errorf("an answer to operation %d came, not to %d", done.Imm, uint32(seq))
	}
	l.answered++
	found := l.found(seq)
	if err := l.ack.PostRecv(fabric.Recv(0)); err != nil {
		return err
	}
	return ended(seq, found)
}

// describe writes the message that makes the NICs of a chain execute an operation:
// for each replica the ends of four requests (see layout.go).
func (l *line) describe(to []byte, seq uint64, o *operation) int {
	n := 0
	put := func(w fabric.WR, skip int) {
		p := w.Patch()
		n += copy(to[n:], p[skip:])
	}
	for i := range l.offers {
		put(l.execute(seq, i, o), 0)
		put(l.copy(i, o), patchBytes-copyBytes)
		put(l.flush(i, o), patchBytes-copyBytes)
		put(l.forward(seq, i, o), patchBytes-copyBytes)
	}
	clear(to[n : n+l.spec.foundBytes()])
	n += l.spec.foundBytes()
	return n + copy(to[n:], o.data)
}

// stageAt is replica i's slot for an operation, as its own requests name it.
func (l *line) stageAt(seq uint64, i int) uint64 {
	return l.offers[i].Stage + seq%uint64(l.spec.Slots)*uint64(l.spec.stageBytes())
}

// execute is what replica i does between its slot and its memory.
func (l *line) execute(seq uint64, i int, o *operation) fabric.WR {
	at := l.offers[i].Data.At(o.off)
	found := l.stageAt(seq, i) + uint64(l.spec.foundAt(i))
	switch {
	case o.kind == gWrite:
		return fabric.Write(at, fabric.Piece{Addr: found + uint64(l.spec.foundBytes()), Bytes: uint32(o.n)})
	case o.kind == gCAS && o.execute.Has(i):
		return fabric.CAS(at, o.old, o.new, fabric.Piece{Addr: found + uint64(i*wordBytes), Bytes: wordBytes})
	}
	return fabric.Nop()
}

// copy is what replica i does within its memory.
func (l *line) copy(i int, o *operation) fabric.WR {
	if o.kind != gCopy {
		return fabric.Nop()
	}
	return fabric.Write(l.offers[i].Data.At(o.off), fabric.Piece{Addr: l.offers[i].DataPiece + o.src, Bytes: uint32(o.n)})
}

func (l *line) flush(i int, o *operation) fabric.WR {
	if !o.durable {
		return fabric.Nop()
	}
	return fabric.Flush(l.offers[i].Data.At(o.off), uint32(o.n), l.persist)
}

// forward passes the rest of the message on; the last replica answers with the
// result map instead.
func (l *line) forward(seq uint64, i int, o *operation) fabric.WR {
	rest := fabric.Piece{Addr: l.stageAt(seq, i) + copyBytes, Bytes: uint32(l.spec.foundBytes())}
	w := fabric.WriteImm(l.reg.Info().At(l.answerAt(seq)), uint32(seq), rest)
	if i < len(l.offers)-1 {
		rest.Bytes += uint32((len(l.offers)-1-i)*hopBytes + len(o.data))
		w = fabric.Send(rest)
	}
	return w
}
