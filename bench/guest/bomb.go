package guest

import (
	"bytes"

	"github.com/ostrodb/ostro/tenant/extension/wasm"
)

// What compilers take time for by its square, nearly as much of it as a server accepts: some 60 kB that
// keep a core busy for a third of a second and more.
const (
	bombBlocks    = 2900
	bombFunctions = 7
)

// Bomb is a module that takes long to compile. No two are alike, or it would be compiled once.
func Bomb(n int) []byte {
	body := bytes.Repeat([]byte{0x02, 0x40, 0x0b}, bombBlocks) // block, end
	m := wasm.Module{
		Types:    []wasm.FuncType{{Results: []byte{wasm.I32}}},
		Memories: []wasm.Limits{{Min: 1}},
		Exports:  []wasm.Export{{Name: "memory", Kind: wasm.KindMemory}, {Name: "ostro_fn_bomb", Kind: wasm.KindFunc}},
	}
	for range bombFunctions {
		m.Funcs = append(m.Funcs, 0)
		m.Code = append(m.Code, wasm.Code{Body: append(bytes.Clone(body), 0x41, byte(n&63), 0x0b)}) // i32.const n, end
		n >>= 6
	}
	return m.Encode()
}
