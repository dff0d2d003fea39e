package meter

import "github.com/ostrodb/ostro/tenant/extension/wasm"

const (
	callCost     = 4
	indirectCost = tableMost + 8 // what it calls may be small, and then charges nothing itself
	hostCost     = 100
	bulkCost     = 8
	oweMost      = 25_000                    // what regions cost together, at most, that take fuel without looking: half a slice
	moveCost     = bulkCost + inlineBytes/16 // memory.copy and memory.fill, of up to inlineBytes
)

// cost is what an instruction is charged, in units of a simple one, a third of a nanosecond or so. Bulk operations
// cost by their size besides, calls of small functions what those cost.
func cost(in *wasm.Instr) uint64 {
	switch op := in.Op; {
	case op == wasm.Block || op == wasm.Loop || op == wasm.End || op == wasm.Else || op == wasm.Nop || op == wasm.Drop:
		return 0
	case op == wasm.Call:
		return callCost
	case op == wasm.CallIndirect:
		return indirectCost
	case op == wasm.BrTable:
		return 3
	case op >= 0x6d && op <= 0x70, op >= 0x7f && op <= 0x82: // integer division
		return 8
	case op == 0x91 || op == 0x95 || op == 0x9f || op == 0xa3: // roots and divisions of floats
		return 6
	case isMove(op):
		return moveCost
	case isBulk(op):
		return bulkCost
	case op >= 0xfd00:
		return 2
	}
	return 1
}

// isMove tells of those that are so common, and mostly so small, that a size up to inlineBytes is in their cost.
func isMove(op wasm.Op) bool { return op == wasm.MemoryCopy || op == wasm.MemoryFill }

// isBulk tells of instructions whose work depends on an operand, the uppermost one.
func isBulk(op wasm.Op) bool {
	switch op {
	case wasm.MemoryCopy, wasm.MemoryFill, wasm.MemoryInit, wasm.MemoryGrow,
		wasm.TableCopy, wasm.TableFill, wasm.TableInit, wasm.TableGrow:
		return true
	}
	return false
}
