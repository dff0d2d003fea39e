//go:build wasip1

package ostro

import (
	"bytes"
	"unsafe"
)

// The area: the host puts arguments there before a call, and takes the response from
// there when the function has returned. What does not fit takes a call of the host.
//
// It is global, and Go moves no global variable: the host may keep its address.
var area struct {
	args, argsCap, argsLen uint32
	resp, respCap, respLen uint32

	argsRoom, respRoom [2048]byte
}

//go:wasmexport ostro_area
func areaAt() uint32 {
	area.args, area.argsCap = address(&area.argsRoom[0]), uint32(len(area.argsRoom))
	area.resp, area.respCap = address(&area.respRoom[0]), uint32(len(area.respRoom))
	return uint32(uintptr(unsafe.Pointer(&area)))
}

func address(b *byte) uint32 { return uint32(uintptr(unsafe.Pointer(b))) }

// invocation returns the block of keys and arguments. It is the call's own: the area is the next one's.
func invocation() []byte {
	n := area.argsLen
	if n > 0 && n <= uint32(len(area.argsRoom)) {
		return bytes.Clone(area.argsRoom[:n])
	}
	block := make([]byte, max(n, 512))
	at, capacity := start(block)
	if n := abiArgs(at, capacity); n > capacity {
		block = make([]byte, n)
		abiArgs(start(block))
	}
	return block
}

// respond appends to the response. What is too large for the area follows what was left there.
func respond(piece []byte) {
	if room := area.respRoom[area.respLen:]; len(piece) <= len(room) {
		area.respLen += uint32(copy(room, piece))
		return
	}
	if area.respLen > 0 {
		abiResp(start(area.respRoom[:area.respLen]))
		area.respLen = 0
	}
	abiResp(start(piece))
}
