package ring

import (
	"math/bits"
	"sync/atomic"
)

// Doorbells are a program's way to say which of its queue pairs have news: a bit
// each. Bit Kick stands for all that wait for anything but a post.
//
//	line 0   asleep
//	line 1…  words of bits
type Doorbells struct {
	asleep *atomic.Uint32
	words  [Bells / 64]*atomic.Uint64
}

const (
	// Bells is how many queue pairs a program can have, plus one.
	Bells = 4096
	// Kick is the bell that belongs to no queue pair.
	Kick = 0
	// DoorbellsBytes is the size of the memory.
	DoorbellsBytes = page
)

// NewDoorbells gives access to the memory.
func NewDoorbells(mem []byte) *Doorbells {
	d := &Doorbells{asleep: word32(mem, 0)}
	for i := range d.words {
		d.words[i] = word64(mem, line+8*i)
	}
	return d
}

// Ring sets a bell and tells whether the NIC has to be woken.
func (d *Doorbells) Ring(bell uint32) bool {
	d.words[bell/64].Or(1 << (bell % 64))
	return d.asleep.Load() != 0
}

// Take clears the bells and calls heard for each that was set.
func (d *Doorbells) Take(words int, heard func(bell uint32)) {
	for i, w := range d.words[:words] {
		if w.Load() == 0 {
			continue
		}
		for set := w.Swap(0); set != 0; set &= set - 1 {
			heard(uint32(i*64 + bits.TrailingZeros64(set)))
		}
	}
}

// Silent tells that no bell is set.
func (d *Doorbells) Silent(words int) bool {
	for _, w := range d.words[:words] {
		if w.Load() != 0 {
			return false
		}
	}
	return true
}

// SetAsleep says whether ringing needs a wake-up. A NIC sets it, looks once more,
// and only then sleeps.
func (d *Doorbells) SetAsleep(asleep bool) {
	v := uint32(0)
	if asleep {
		v = 1
	}
	d.asleep.Store(v)
}
