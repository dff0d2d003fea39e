package extension

import (
	"encoding/binary"
	"sync/atomic"
)

// Most functions begin with the value of their first key. Who does so gets it before the call, in the area, and needs no
// call of the host for it. Which functions those are the host learns from their calls.

// noFirst is the length of a value that was not put.
const noFirst = 1<<32 - 1

// habits are what functions of a module do first, a bit for each of its first functions. All tenants of the module have
// them in common: they are about its code.
type habits struct {
	reads atomic.Uint64 // those that begin with a get of their first key
	vain  atomic.Uint32 // how often one did not
}

// vainMost is how often values are put for nobody before nothing is learnt any more.
const vainMost = 64

func (h *habits) expected(which uint64) bool { return which < 64 && h.reads.Load()>>which&1 != 0 }

func (h *habits) learn(which uint64) {
	if which < 64 && h.vain.Load() < vainMost {
		h.reads.Or(1 << which)
	}
}

func (h *habits) unlearn(which uint64) {
	h.reads.And(^(uint64(1) << which))
	h.vain.Add(1)
}

// placeFirst puts the value of the first key where the guest looks for it, if it is expected to, and the store has it at
// once. It counts as read.
func (t *Task) placeFirst() {
	in := t.in
	area, ok := in.mem.at(in.area, firstBytes)
	if !ok {
		return
	}
	binary.LittleEndian.PutUint32(area[32:], noFirst)
	binary.LittleEndian.PutUint32(area[36:], 0)
	if t.inv.Prompt == nil || len(t.inv.Keys) == 0 || len(t.inv.Keys[0]) > min(keyMost, t.limits.WriteBytes) || t.limits.Reads == 0 {
		return // Nobody could be told that it is not to be remembered: the guest does not run yet.
	}
	if !in.pool.module.habits.expected(in.which) {
		t.learns = true
		return
	}
	ptr := binary.LittleEndian.Uint32(area[24:])
	buf, ok := in.mem.at(ptr, binary.LittleEndian.Uint32(area[28:]))
	if !ok || !t.inv.Prompt.Prompt(t.inv.Keys[0], buf, &t.value) {
		return
	}
	binary.LittleEndian.PutUint32(area[32:], uint32(t.value.Len))
	t.used[0].set(uint64(ptr), uint64(t.value.Len))
	t.budget -= int64(t.value.Len / 16)
	t.remember(0, t.inv.Keys[0], t.value.Version)
	t.placed = true
}

// learnFirst notes that the first thing a call does is a get of what may be its first key.
func (t *Task) learnFirst(stack []uint64) {
	t.learns = false
	area, ok := t.in.mem.at(t.in.area, areaBytes)
	if !ok || t.hostCalls != 1 || uint32(stack[0]) != 0 {
		return
	}
	at := uint64(binary.LittleEndian.Uint32(area)) + uint64(8+4*(len(t.inv.Keys)+len(t.inv.Args)))
	if uint64(uint32(stack[1])) == at && int(uint32(stack[2])) == len(t.inv.Keys[0]) {
		t.in.pool.module.habits.learn(t.in.which)
	}
}

// takeBackFirst forgets the read of a value that was put, if the guest has not looked at it.
func (t *Task) takeBackFirst() {
	area, ok := t.in.mem.at(t.in.area, firstBytes)
	if !ok || binary.LittleEndian.Uint32(area[36:]) != 0 {
		return
	}
	t.in.pool.module.habits.unlearn(t.in.which)
	reads := t.changes.Reads
	t.changes.Reads = reads[:copy(reads, reads[1:])]
}
