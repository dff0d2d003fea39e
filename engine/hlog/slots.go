package hlog

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/internal/invariant"
)

// slot is what a reader needs to know of a segment: where it is in memory and
// up to where its bytes may be shown to others.
//
// Owner of a slot's words: the log, under its mutex; readers load them under
// an epoch guard. base is nil while the segment is not in memory. stable only
// grows while a segment lives in the slot.
type slot struct {
	base   unsafe.Pointer // atomic
	stable uint32         // atomic: entries below this offset survive what the log promises
	state  uint32         // atomic: a state, and perhaps the mark of age
}

// Where the words of a slot are, for those who read them by assembly.
const (
	SlotBytes = unsafe.Sizeof(slot{})
	SlotState = unsafe.Offsetof(slot{}.state)
)

// state tells what may happen to a segment's bytes.
type state uint32

// Mutable tells whether an entry may be updated in place.
func (s state) Mutable() bool { return s == stateMutable }

// Constant tells whether an entry cannot change any more, nor is about to be
// forgotten: most can be read where they lie. A lock bit may be left in its
// version: it means nothing.
func (s state) Constant() bool { return s == stateFrozen || s == stateLogged || s == stateStill }

const (
	stateFree     state = iota
	stateMutable        // records may be updated in place (volatile logs)
	stateLogged         // an open head of a logged log: append-only
	stateFreezing       // announced read-only; guards of before may still update in place
	stateStill          // nothing is updated in place; guards of before may still hold version locks
	stateFrozen         // never changes again
)

// wholeSegment as stable offset: all of it.
const wholeSegment = ^uint32(0)

// slotTable is a flat array in reserved address space; only touched pages cost
// memory.
type slotTable struct {
	mem     []byte
	entries *[record.MaxSlots]slot
}

func newSlotTable() (*slotTable, error) {
	mem, err := reserve(int(unsafe.Sizeof(slot{})) * record.MaxSlots)
	if err != nil {
		return nil, err
	}
	return &slotTable{mem: mem, entries: (*[record.MaxSlots]slot)(unsafe.Pointer(&mem[0]))}, nil
}

func (t *slotTable) close() { unix.Munmap(t.mem) }

// Slots is where the slots lie, by their number. See the constants of a slot.
func (l *Log) Slots() unsafe.Pointer { return unsafe.Pointer(l.slots.entries) }

// State is what a word that was read at SlotState means.
func State(word uint32) state { return state(word) }

func (t *slotTable) at(n uint32) *slot { return &t.entries[n] }

func (s *slot) loadBase() unsafe.Pointer { return atomic.LoadPointer(&s.base) }
func (s *slot) setBase(p unsafe.Pointer) { atomic.StorePointer(&s.base, p) }
func (s *slot) loadStable() uint32       { return atomic.LoadUint32(&s.stable) }
func (s *slot) setStable(off uint32)     { atomic.StoreUint32(&s.stable, off) }

// raiseStable is for a segment that lives: its stable part only grows.
func (s *slot) raiseStable(off uint32) {
	for old := s.loadStable(); old < off; old = s.loadStable() {
		if atomic.CompareAndSwapUint32(&s.stable, old, off) {
			return
		}
	}
}

// aging is a mark beside a frozen segment's state: a cache is about to forget it.
const aging = 1 << 8

func (s *slot) loadState() state { return state(atomic.LoadUint32(&s.state) &^ aging) }
func (s *slot) setState(st state) {
	if invariant.Enabled {
		old := s.loadState()
		invariant.Check(old != stateFrozen || st == stateFrozen || st == stateFree, "a frozen segment was given state %d", st)
	}
	atomic.StoreUint32(&s.state, uint32(st))
}

// Age marks a frozen segment as one of the next to be forgotten. What is read
// from it now has earned another life.
func (l *Log) Age(s *Segment) {
	at := l.slots.at(s.Slot)
	atomic.CompareAndSwapUint32(&at.state, uint32(stateFrozen), uint32(stateFrozen)|aging)
}

// Aging tells whether the entry at a is about to be forgotten.
func (l *Log) Aging(a record.Address) bool {
	return atomic.LoadUint32(&l.slots.at(a.Slot()).state)&aging != 0
}

// Entry gives the entry at a; ok is false when it is not in memory.
func (l *Log) Entry(a record.Address) (p record.Ptr, ok bool) {
	base := l.slots.at(a.Slot()).loadBase()
	if base == nil {
		return record.Ptr{}, false
	}
	return record.At(base, a.Offset()), true
}

// Sight is how the entry at an address may be read, as of the moment of See. What
// is constant by then stays so; had a reader looked at the entry first, it might
// have been updated in between for the last time.
type Sight struct {
	at *slot
	a  record.Address
	state
}

// See looks at the segment of the entry at a, once for all that a reader asks,
// and before it reads any of it.
func (l *Log) See(a record.Address) Sight {
	at := l.slots.at(a.Slot())
	return Sight{at, a, state(atomic.LoadUint32(&at.state))}
}

// Entry gives the entry; nil when it is not in memory.
func (s Sight) Entry() record.Ptr {
	base := s.at.loadBase()
	if base == nil {
		return record.Ptr{}
	}
	return record.At(base, s.a.Offset())
}

// Stable is Log.Stable of the entry.
func (s Sight) Stable() bool { return s.a.Offset() < s.at.loadStable() }

// Stable tells whether the entry at a survives what the log promises to
// survive, so that what was read from it may be shown.
func (l *Log) Stable(a record.Address) bool {
	return a.Offset() < l.slots.at(a.Slot()).loadStable()
}

// Mutable tells whether the entry at a may be updated in place.
func (l *Log) Mutable(a record.Address) bool {
	return l.slots.at(a.Slot()).loadState().Mutable()
}

// Frozen tells whether nobody can be updating the entry at a in place, so that
// its version is not to be locked. A lock bit may be left in it: it means nothing.
func (l *Log) Frozen(a record.Address) bool {
	return l.slots.at(a.Slot()).loadState().Constant()
}

// reserve maps zeroed memory that costs nothing until it is touched.
func reserve(bytes int) ([]byte, error) {
	return unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
}

// deadBytes counts, per slot, the bytes that one head's sessions know to be
// dead. Counters of different heads share no cache line, so overwriting never
// makes two cores contend; the cleaner adds them up.
type deadBytes struct {
	mem    []byte
	counts *[record.MaxSlots]int32
}

func newDeadBytes() (deadBytes, error) {
	mem, err := reserve(4 * record.MaxSlots)
	if err != nil {
		return deadBytes{}, err
	}
	return deadBytes{mem: mem, counts: (*[record.MaxSlots]int32)(unsafe.Pointer(&mem[0]))}, nil
}

func (d *deadBytes) close() { unix.Munmap(d.mem) }

func (d *deadBytes) add(slot uint32, n int32) { atomic.AddInt32(&d.counts[slot], n) }
func (d *deadBytes) get(slot uint32) int32    { return atomic.LoadInt32(&d.counts[slot]) }
func (d *deadBytes) reset(slot uint32)        { atomic.StoreInt32(&d.counts[slot], 0) }
