package migrate

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/fabric"
)

// Between two nodes of one machine entries need no wire. The target of a migration makes memory that the source maps, and each
// pull has a part of it, its slot: the source copies entries there from its log, as it comes to them, and its answer says how
// much it was. That is one copy less than a socket makes, and it is made while the entry is in the cache. Behind the entries' part of a slot
// stands what the source knows of their places: the target need not make those of the keys.
//
// A question names a few slots in a row, for as many pulls of its range, one after the other: a message costs as much as fifty records.
//
// Invariants:
//   - A landing belongs to one connection and dies with it, and on that calls are answered in order. So the source writes to
//     slots only between a question and its answer.
//   - A slot has at most one pull under way. So the target reads only what nobody writes.
//
// What does not fit a slot comes over the wire, behind what did, and ends the answer; and all of it comes so if the source cannot map the
// memory, or knows of no landings.
const (
	methodLand     = "migrate.landings" // Of before questions had several pulls it was migrate.landing: those two do not mix.
	methodPullInto = "migrate.pull-into-slots"
)

// Pulls of one question: so many, if they do not bring more than that together.
const (
	pullsTogether = 4
	bytesTogether = 80 << 10
)

// together is how many pulls of so many bytes one question has at the most.
func together(bytes int) int { return max(1, min(pullsTogether, bytesTogether/bytes)) }

// land is the head of methodLand: memory that pulls of a migration are to fill.
type land struct {
	ID    ID           `json:"id"`
	Share fabric.Share `json:"share"`
	Slot  int          `json:"slot"` // bytes of one for entries
	// Over says that it is needed no more.
	Over bool `json:"over,omitempty"`
}

// landing is the target's memory.
type landing struct {
	memory *fabric.Memory
	share  fabric.Share
	room   slotRoom
	row    int      // slots of one question
	free   []uint32 // the first slots of rows
}

// slotSlack is how much more than it was asked for a pull brings at times: it ends with a whole bucket.
const slotSlack = 4 << 10

// slotRoom is how many bytes of a slot are for entries. What follows is for their places.
type slotRoom int

const (
	slotEntry = 32 // bytes that an entry is thought to have at the least
	slotPlace = 8
)

func roomFor(bytes int) slotRoom { return slotRoom(bytes+slotSlack) &^ 63 } // Entries lie at multiples of 8.

// bytes are those of the whole slot.
func (r slotRoom) bytes() int { return int(r) + int(r)/slotEntry*slotPlace }

// newLanding makes memory for so many questions at a time whose pulls bring so many bytes each.
func newLanding(questions, bytes int) (*landing, error) {
	l := &landing{room: roomFor(bytes), row: together(bytes)}
	var err error
	if l.memory, l.share, err = fabric.NewShared(questions * l.row * l.room.bytes()); err != nil {
		return nil, err
	}
	for i := range questions {
		l.free = append(l.free, uint32(i*l.row))
	}
	return l, nil
}

func (l *landing) ask(id ID, over bool) land {
	return land{ID: id, Share: l.share, Slot: int(l.room), Over: over}
}

// markOf is what pulls call a landing.
func markOf(s fabric.Share) uint64 { return binary.LittleEndian.Uint64(s.Mark) }

// take gives a row of slots, and leave takes it back.
func (l *landing) take() uint32 {
	last := len(l.free) - 1
	n := l.free[last]
	l.free = l.free[:last]
	return n
}

func (l *landing) leave(slot uint32) { l.free = append(l.free, slot) }

// landed is what landed in slot n.
func (l *landing) landed(n, bytes uint32) (slot, error) {
	if int64(bytes) > int64(l.room) {
		return slot{}, fmt.Errorf("%w: %d bytes in a slot of %d", peer.ErrMalformed, bytes, l.room)
	}
	s := l.room.slot(l.memory.Bytes(), n)
	s.entries = s.entries[:bytes]
	return s, nil
}

// slot is memory for the answer to one pull: entries, and what the source knows of their places. The zero value is none.
type slot struct{ entries, known []byte }

// slot gives slot n of a landing's memory; none if it has no such.
func (r slotRoom) slot(all []byte, n uint32) slot {
	from := uint64(n) * uint64(r.bytes())
	if from+uint64(r.bytes()) > uint64(len(all)) {
		return slot{}
	}
	one := all[from : from+uint64(r.bytes())]
	return slot{one[:r:r], one[r:]}
}

// pullInto is a few pulls, one after the other, whose answers go to slots: the head of methodPullInto.
type pullInto struct {
	pull    // the first
	Landing uint64
	Slot    uint32 // its
	Pulls   uint32 // at the most; the next ones have the slots behind it
}

const pullIntoBytes = pullBytes + 8 + 4 + 4

func (p *pullInto) encode(b []byte) peer.Raw {
	le := binary.LittleEndian
	b = le.AppendUint64(p.pull.encode(b), p.Landing)
	return le.AppendUint32(le.AppendUint32(b, p.Slot), p.Pulls)
}

func (p *pullInto) decode(b []byte) error {
	if len(b) != pullIntoBytes {
		return fmt.Errorf("%w: a pull into memory of %d bytes", peer.ErrMalformed, len(b))
	}
	le, rest := binary.LittleEndian, b[pullBytes:]
	p.Landing, p.Slot, p.Pulls = le.Uint64(rest), le.Uint32(rest[8:]), le.Uint32(rest[12:])
	if p.Pulls < 1 || p.Pulls > pullsTogether {
		return fmt.Errorf("%w: a question of %d pulls", peer.ErrMalformed, p.Pulls)
	}
	return p.pull.decode(b[:pullBytes])
}

// landed is what an answer says of one of them. Its head has one of each that was done, in their order. Only the last may have something in
// the bulk, or be the end of the range.
type landed struct {
	pulled
	Bytes uint32 // of entries in its slot
}

const landedBytes = pulledBytes + 4

func (p *landed) append(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(append(b, p.pulled.encode()...), p.Bytes)
}

// landedOf reads the answer to a question of so many pulls at the most, behind what into has.
func landedOf(b []byte, most int, into []landed) ([]landed, error) {
	n := len(b) / landedBytes
	if len(b)%landedBytes != 0 || n < 1 || n > most {
		return into, fmt.Errorf("%w: an answer to a pull into memory with a head of %d bytes", peer.ErrMalformed, len(b))
	}
	for i := range n {
		one := b[i*landedBytes : (i+1)*landedBytes]
		l := landed{Bytes: binary.LittleEndian.Uint32(one[pulledBytes:])}
		if err := l.pulled.decode(one[:pulledBytes]); err != nil {
			return into, err
		}
		if i < n-1 && (l.Cold > 0 || l.all()) {
			return into, fmt.Errorf("%w: an answer that goes on behind its last pull", peer.ErrMalformed)
		}
		into = append(into, l)
	}
	return into, nil
}

// grounds are the landings of targets, as their source has them.
type grounds struct {
	mu  sync.Mutex
	all []*ground // oldest first
}

// ground is one. Nobody waits for those who write there, for they may wait for a disk: the last of them lets a ground go that is over.
type ground struct {
	name   uint64
	id     ID
	to     view.NodeID
	room   slotRoom
	memory *fabric.Memory

	mu    sync.Mutex
	users int // who write there
	over  bool
}

// maxGrounds bounds what targets that died have left behind: each lane of a migration has one.
func maxGrounds() int { return 16 * atOnce() }

// land maps a target's memory, or lets it go.
func (s *Source) land(ctx context.Context, c *peer.Call) (any, []byte, error) {
	var ask land
	if err := c.Bind(&ask); err != nil {
		return nil, nil, err
	}
	if len(ask.Share.Mark) < 8 || ask.Slot <= 0 || ask.Slot%8 != 0 || ask.Slot > peer.MaxBulkBytes {
		return nil, nil, fmt.Errorf("%w: a landing with slots of %d bytes", peer.ErrMalformed, ask.Slot)
	}
	if ask.Over {
		s.grounds.drop(func(g *ground) bool { return g.name == markOf(ask.Share) && g.to == c.From })
		return nil, nil, nil
	}
	if _, err := s.origin.Given(ctx, ask.ID, c.From); err != nil {
		return nil, nil, err
	}
	s.grounds.drop(func(g *ground) bool {
		_, err := s.origin.Given(ctx, g.id, g.to)
		return err != nil
	})
	memory, err := fabric.OpenShared(ask.Share)
	if err != nil {
		return nil, nil, err
	}
	s.grounds.add(&ground{name: markOf(ask.Share), id: ask.ID, to: c.From, room: slotRoom(ask.Slot), memory: memory})
	return nil, nil, nil
}

func (gs *grounds) add(g *ground) {
	gs.mu.Lock()
	gs.all = append(gs.all, g)
	var old *ground
	if len(gs.all) > maxGrounds() {
		old, gs.all = gs.all[0], gs.all[1:]
	}
	gs.mu.Unlock()
	if old != nil {
		old.close()
	}
}

// drop forgets those of which over says so. It is asked without a lock.
func (gs *grounds) drop(over func(*ground) bool) {
	gs.mu.Lock()
	all := append([]*ground(nil), gs.all...)
	gs.mu.Unlock()
	for _, g := range all {
		if over(g) {
			gs.remove(g)
			g.close()
		}
	}
}

func (gs *grounds) remove(g *ground) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	for i, o := range gs.all {
		if o == g {
			gs.all = append(gs.all[:i:i], gs.all[i+1:]...)
			return
		}
	}
}

// of finds the one that a pull names; nil if there is none.
func (gs *grounds) of(p *pullInto, to view.NodeID) *ground {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	for _, g := range gs.all {
		if g.name == p.Landing && g.id == p.ID && g.to == to {
			return g
		}
	}
	return nil
}

// enter keeps the memory there until leave, unless it is over.
func (g *ground) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over {
		return false
	}
	g.users++
	return true
}

func (g *ground) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.users--
	g.tidy()
}

// close has nobody else write there.
func (g *ground) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.over {
		g.over = true
		g.tidy()
	}
}

// tidy lets the memory go when nobody needs it any more. The caller holds mu.
func (g *ground) tidy() {
	if g.over && g.users == 0 {
		_ = g.memory.Close()
	}
}

// pullInto is a few pulls; what fits goes to slots of the target's memory.
func (s *Source) pullInto(ctx context.Context, c *peer.Call) (any, []byte, error) {
	var ask pullInto
	if err := ask.decode(c.Head); err != nil {
		return nil, nil, err
	}
	g := s.grounds.of(&ask, c.From)
	if g != nil && g.enter() {
		defer g.leave()
	} else {
		g = nil
	}
	said := make([]byte, 0, pullsTogether*landedBytes)
	for n := range ask.Pulls {
		var into slot
		if g != nil {
			into = g.room.slot(g.memory.Bytes(), ask.Slot+n)
		}
		first := n == 0
		got, err := s.pulled(ctx, c, &ask.pull, into, first) // What has landed does not wait for a disk with those behind it.
		switch {
		case err != nil && first:
			return nil, nil, err
		case err != nil: // The next question is told.
			return peer.Raw(said), nil, nil
		}
		said = got.append(said)
		if pieces, _ := c.Gathered(); got.all() || len(pieces) > 0 {
			break
		}
	}
	return peer.Raw(said), nil, nil
}
