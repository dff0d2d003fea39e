package extension

import (
	"encoding/binary"
	"errors"
)

// A module can have an area: six numbers of 32 bits in its memory, where arguments are put before it is called, and a
// response is left when it has returned, so that neither takes a call of the host.
//
//	args_ptr  args_cap  args_len  resp_ptr  resp_cap  resp_len
//
// Pointers and capacities are the guest's, read anew by every call and believed no further than its memory goes.
//
// If the module also exports ostro_first there are four more, for the value of the first key; see first.
//
//	first_ptr  first_cap  first_len  first_used
const (
	areaBytes  = 24
	firstBytes = 40
)

// errArea is an instance that says its area is where it has no memory.
var errArea = errors.New("its ostro_area is outside of its memory")

// findArea asks a new instance where its area is.
func (in *instance) findArea(turns Turns) error {
	m := in.pool.module
	if !m.hasArea {
		return nil
	}
	at, err := in.runFirst(areaName, m.area, turns)
	if err != nil {
		return err
	}
	in.area = uint32(at)
	if _, ok := in.mem.at(in.area, m.areaLen()); !ok || in.area == 0 {
		return errArea
	}
	return nil
}

func (m *Module) areaLen() uint32 {
	if m.hasFirst {
		return firstBytes
	}
	return areaBytes
}

// place puts the arguments where the guest looks for them; if there is no room it finds only their length.
func (t *Task) place() {
	mem := &t.in.mem
	area, ok := mem.at(t.in.area, areaBytes)
	if !ok {
		return
	}
	binary.LittleEndian.PutUint32(area[8:], uint32(t.argsLen))
	binary.LittleEndian.PutUint32(area[20:], 0)
	ptr, size := binary.LittleEndian.Uint32(area), binary.LittleEndian.Uint32(area[4:])
	if uint32(t.argsLen) > size {
		return
	}
	if buf, ok := mem.at(ptr, uint32(t.argsLen)); ok {
		t.budget -= int64(t.argsLen / 16)
		putArgs(buf, t.inv)
	}
}

// fetch appends what the guest has left to the response, or says why not.
func (t *Task) fetch() error {
	mem := &t.in.mem
	area, ok := mem.at(t.in.area, areaBytes)
	if !ok {
		return nil
	}
	n := binary.LittleEndian.Uint32(area[20:])
	if n == 0 {
		return nil
	}
	b, ok := mem.at(binary.LittleEndian.Uint32(area[12:]), n)
	switch {
	case !ok || n > binary.LittleEndian.Uint32(area[16:]):
		return &CallError{Kind: Misused, Function: t.inv.Function, Message: "left a response in memory that it does not have"}
	case t.tooLong(len(b)):
		return &CallError{Kind: OverLimit, Function: t.inv.Function, Message: "gave too long a response"}
	case t.inv.Trial && t.responded()+len(b) > keptBytes:
		return ErrAbandoned // To copy it takes longer than others may wait.
	}
	t.budget -= int64(n / 16)
	if e := t.respond(b); e != nil {
		return e
	}
	return nil
}
