//go:build wasip1

package ostro

import "unsafe"

// The interface itself, as docs/function-abi.md has it.

//go:wasmimport ostro args
func abiArgs(buf unsafe.Pointer, capacity uint32) uint32

//go:wasmimport ostro get
func abiGet(table uint32, key unsafe.Pointer, keyLen uint32, buf unsafe.Pointer, capacity uint32) int64

//go:wasmimport ostro read
func abiRead(view, offset uint32, buf unsafe.Pointer, length uint32) int32

//go:wasmimport ostro multiget
func abiMultiget(table uint32, keys unsafe.Pointer, n uint32, results, buf unsafe.Pointer, capacity uint32) int32

//go:wasmimport ostro alloc
func abiAlloc(table uint32, key unsafe.Pointer, keyLen, length uint32) int32

//go:wasmimport ostro fill
func abiFill(buffer int32, offset uint32, ptr unsafe.Pointer, length uint32) int32

//go:wasmimport ostro put
func abiPut(buffer int32, ttlMillis int64) int32

//go:wasmimport ostro set
func abiSet(table uint32, key unsafe.Pointer, keyLen uint32, ptr unsafe.Pointer, length uint32, ttlMillis int64) int32

//go:wasmimport ostro del
func abiDel(table uint32, key unsafe.Pointer, keyLen uint32) int32

//go:wasmimport ostro scan
func abiScan(table uint32, cursor, prefix unsafe.Pointer, prefixLen uint32, buf unsafe.Pointer, capacity, flags uint32) int32

//go:wasmimport ostro resp
func abiResp(ptr unsafe.Pointer, length uint32) int32

//go:wasmimport ostro yield
func abiYield()

//go:wasmimport ostro log
func abiLog(level uint32, ptr unsafe.Pointer, length uint32)

//go:wasmimport ostro now
func abiNow() int64

//go:wasmimport ostro random
func abiRandom(ptr unsafe.Pointer, length uint32)

//go:wasmimport ostro fail
func abiFail(code int32, ptr unsafe.Pointer, length uint32)

// start returns where bytes begin and how many there are.
func start(b []byte) (unsafe.Pointer, uint32) {
	return unsafe.Pointer(unsafe.SliceData(b)), uint32(len(b))
}
