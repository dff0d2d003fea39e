package group

import "github.com/ostrodb/ostro/fabric"

// chainNIC is what a replica's NIC needs to execute operations by itself. For each
// slot there lie posted, once and for all, in queues that repeat
//
//	up     RECV: ends of the loop's three un-owned requests; the rest to the slot
//	loop   WAIT for up · execute* · copy* · flush* · move the end of down's request there
//	down   WAIT for loop · pass on*                            (* un-owned, filled in by the client)
//
// The program does nothing any more. A slot is free for the next message when the
// operation has ended at the client, which has no more than a window of them in flight.
//
// Invariant: a slot's requests start only when its message has arrived whole and
// everything before it was executed. The message's first bytes hand the loop's requests over
// before its last ones are there, so the WAITs see to that: they are on queues that
// count what went well. With one that counts flushed RECVs, too, a message cut in
// its middle would have the slot's former one passed on.
type chainNIC struct {
	arrived, done fabric.CQ
	loop          fabric.QP
	loopRing      fabric.Region
	ring          fabric.Region // of down
}

const loopRequests = 5

func (p *part) newNIC() (*chainNIC, error) {
	c := &chainNIC{}
	var err error
	if c.arrived, err = p.dom.NewCQ(0); err != nil {
		return nil, err
	}
	if c.done, err = p.dom.NewCQ(0); err != nil {
		return nil, err
	}
	c.loop, err = p.dom.NewQP(fabric.QPConfig{
		SendCQ: c.done, RecvCQ: p.events, SendDepth: loopRequests * p.spec.Slots, RecvDepth: 1, Repeat: true,
	})
	if err != nil {
		return nil, err
	}
	if c.loopRing, err = p.dom.RegisterRing(c.loop, fabric.LocalWrite); err != nil {
		return nil, err
	}
	return c, c.loop.PostRecv(fabric.Recv(0)) // Tells of the loop's failure.
}

// startLoop lets the loop go round, when all of its requests are posted.
func (p *part) startLoop() error {
	if p.nic == nil {
		return nil
	}
	return p.nic.loop.Connect(p.nic.loop.Endpoint())
}

// armNIC posts the requests of a slot: the RECV last, for it starts all.
func (p *part) armNIC(slot uint64) error {
	c, stage, first, last := p.nic, p.stageAt(slot), p.nic.loop.Posted(), p.down.Posted()
	data := p.data.Info().At(0)
	passOn := fabric.SlotAddr(last+1, p.down.SendDepth()) + fabric.CopyOffset
	err := c.loop.Post(
		fabric.WaitEach(c.arrived.Number(), slot+1, uint64(p.spec.Slots)),
		fabric.Write(data, p.slots.Piece(0, 0)).Defer(),
		fabric.Write(data, p.data.Piece(0, 0)).Defer(),
		fabric.Flush(data, 0, 0).Defer(),
		fabric.Write(c.ring.Info().At(passOn), p.slots.Piece(stage, copyBytes)).Signal(0),
	)
	if err != nil {
		return err
	}
	err = p.down.Post(
		fabric.WaitEach(c.done.Number(), slot+1, uint64(p.spec.Slots)),
		fabric.WriteImm(p.ack.At(0), 0, p.slots.Piece(0, 0)).Defer(),
	)
	if err != nil {
		return err
	}
	return p.up.PostRecv(fabric.Recv(0,
		c.end(first+1, fabric.PatchOffset),
		c.end(first+2, fabric.CopyOffset),
		c.end(first+3, fabric.CopyOffset),
		p.slots.Piece(stage, uint32(p.spec.stageBytes()))))
}

// end is the end of a request in the loop's ring, from an offset on.
func (c *chainNIC) end(index, from uint64) fabric.Piece {
	at := fabric.SlotAddr(index, c.loop.SendDepth())
	return c.loopRing.Piece(at+from, uint32(fabric.SlotBytes-from))
}
