package txn

import (
	"context"
	"encoding/binary"
	"fmt"
)

// control is the words of a replica that change.
type control struct{ magic, epoch, next, gate, head uint64 }

// incomplete is the magic of a replica that is being copied to.
const incomplete = 0x304e58544f525453 // "STROTXN0"

func parseControl(b []byte) control {
	le := binary.LittleEndian
	return control{
		magic: le.Uint64(b[magicAt:]), epoch: le.Uint64(b[epochAt:]), next: le.Uint64(b[nextAt:]),
		gate: le.Uint64(b[gateAt:]), head: le.Uint64(b[headAt:]),
	}
}

// bytes is the words from epoch to head.
func (c control) bytes() []byte {
	b := make([]byte, headAt+wordBytes-epochAt)
	for i, v := range [...]uint64{c.epoch, c.next, c.gate, c.head} {
		binary.LittleEndian.PutUint64(b[i*wordBytes:], v)
	}
	return b
}

// inspect finds out who is there. Current are those of the latest epoch: they are in
// it, or are about to be while another one is already. All of them took part in
// all that was acknowledged.
func (r *recovery) inspect(ctx context.Context) error {
	for i := range r.group.Replicas() {
		p := &replica{index: i}
		r.replicas = append(r.replicas, p)
		if err := r.look(ctx, p); err != nil {
			return fmt.Errorf("replica %d: %w", i, err)
		}
	}
	for _, p := range r.replicas {
		if p.control.magic != magic {
			continue
		}
		if p.control.epoch>>32 > r.epoch>>32 {
			r.epoch = p.control.epoch
		}
		r.latest = max(r.latest, p.control.epoch, p.control.next)
	}
	for _, p := range r.replicas {
		c := p.control
		if c.magic == magic && c.epoch>>32 == r.epoch>>32 && c.epoch != r.epoch {
			return fmt.Errorf("%w: replica %d was in epoch %x, another in %x; leave out the one whose changes shall be dropped",
				ErrDiverged, p.index, c.epoch, r.epoch)
		}
		p.current = c.magic == magic && (c.epoch == r.epoch || c.next == r.epoch)
	}
	return nil
}

// look reads one replica's first bytes.
func (r *recovery) look(ctx context.Context, p *replica) error {
	b := make([]byte, controlBytes)
	if err := r.group.Read(ctx, p.index, 0, b); err != nil {
		return err
	}
	if p.control = parseControl(b); p.control.magic == incomplete {
		return nil
	}
	l, formatted, err := parse(b)
	if err != nil || !formatted {
		return err
	}
	if err := l.accepts(r.conf, r.group.Bytes()); err != nil {
		return err
	}
	if r.layout.group != 0 && r.layout != l {
		return fmt.Errorf("%w: it is of group %x, another replica of %x", ErrForeign, l.group, r.layout.group)
	}
	r.layout = l
	return nil
}

// shut keeps out the readers of the replicas' own programs, and tells those that are
// reading that what they read is void.
func (r *recovery) shut(ctx context.Context) error {
	for _, p := range r.replicas {
		if p.control.magic != magic {
			continue
		}
		if err := r.swapAll(ctx, "the gate", gateAt, p.control.gate, 0, p.one()); err != nil {
			return err
		}
	}
	return nil
}

// scan reads the log of each current replica, from its head on, as far as it is whole.
func (r *recovery) scan(ctx context.Context) error {
	for _, p := range r.current() {
		s := scanner{ctx: ctx, group: r.group, layout: r.layout, replica: p}
		if err := s.scan(); err != nil {
			return fmt.Errorf("scan the log of replica %d: %w", p.index, err)
		}
	}
	if err := r.land(ctx); err != nil {
		return err
	}
	r.compare()
	return nil
}

// compare finds the replica with the longest log, and the one with the least head. A replica
// that lacks what the farthest has executed has lost bytes: it is current no more.
func (r *recovery) compare() {
	for _, p := range r.current() {
		if r.far == nil || p.end() > r.far.end() {
			r.far = p
		}
	}
	for _, p := range r.current() {
		if p.current = p.end() >= r.far.control.head; p.current && (r.least == nil || p.control.head < r.least.control.head) {
			r.least = p
		}
	}
}
