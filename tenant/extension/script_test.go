package extension

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/ostrodb/ostro/tenant/extension/wasm"
)

// A script is what one module does, whichever calls of the host that are: it is compiled once, and millions of scripts are
// handed to it, each as an argument.
//
//	script := step*
//	step   := which u8   place u16   an operand for each parameter, u32 or u64
//
// Which is taken modulo the number of steps that there are. The result is stored at the place. A script ends where its
// bytes do, after stepsMost steps, or by a step that ends it.

// steps are all that a script can do: calls of the host, and what needs none.
var steps = slices.Concat(hostCalls, wasiCalls, ownSteps)

// ownSteps are done by the guest itself.
var ownSteps = []hostCall{
	{name: "grow", params: "i", result: "i"},
	{name: "store", params: "l", result: "l"},
	{name: "return", params: "i"},
	{name: "trap"},
}

const (
	stepsMost  = 64
	stepBytes  = 3 // without operands
	scriptMost = 4096
)

// Where things are in the guest's memory, which begins as one page.
const (
	pageBytes = 65_536
	areaAt    = 1024
	wordsAt   = 2048 // keys, and lists of them
	blockAt   = 8192 // keys and arguments, and so the script
	blockCap  = 8192
	firstAt   = 20_480
	firstCap  = 512
	leftAt    = 24_576 // what is left as a response
	leftCap   = 4096
	freeAt    = 32_768
)

// scriptKeys and the script are what the guest is called with.
var scriptKeys = [][]byte{[]byte("first"), {}}

// scriptAt is where the script is within the block.
const scriptAt = 8 + 4*3 + len("first")

// stepNumber finds a step by its name.
var stepNumber = func() map[string]int {
	all := map[string]int{}
	for i, s := range steps {
		all[s.name] = i
	}
	return all
}()

// words are keys that lie in the guest's memory, each with its length before and behind it, as lists of pairs.
var words = []string{"a", "bb", "large", moving, "key07", "none", "far", "huge!!", "", "first", "key"}

// wordAt is where each of the words is, listAt where pairs of their pointers and lengths are.
var wordAt, listAt, wordBytes = layWords()

func layWords() (at map[string]uint64, list uint64, b []byte) {
	at = map[string]uint64{}
	for _, w := range words {
		at[w] = uint64(wordsAt + len(b))
		b = append(b, w...)
	}
	b = append(b, make([]byte, -len(b)&7)...)
	list = uint64(wordsAt + len(b))
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, uint32(at[w]))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(w)))
	}
	return at, list, b
}

// areaWords are the numbers of the area as the module has them.
func areaWords() (b []byte) {
	for _, n := range []uint32{blockAt, blockCap, 0, leftAt, leftCap, 0, firstAt, firstCap, 0, 0} {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return b
}

// firstMemory is what the guest's memory is before its first call.
func firstMemory() []byte {
	b := make([]byte, pageBytes)
	copy(b[areaAt:], areaWords())
	copy(b[wordsAt:], wordBytes)
	return b
}

// interpreter is the module.
func interpreter() []byte {
	m := &wasm.Module{}
	for i, h := range steps[:len(hostCalls)+len(wasiCalls)] {
		module := HostModule
		if i >= len(hostCalls) {
			module = wasiModule
		}
		m.AddImport(module, h.name, m.AddType(wasm.FuncType{Params: types(h.params), Results: types(h.result)}))
	}
	m.Memories = []wasm.Limits{{Min: 1}}
	m.Exports = []wasm.Export{{Name: memoryName, Kind: wasm.KindMemory}}
	for at, b := range map[uint64][]byte{areaAt: areaWords(), wordsAt: wordBytes} {
		m.Datas = append(m.Datas, wasm.Data{Offset: wasm.Const{Instr: wasm.Instr{Op: wasm.I32Const, A: at}}, Bytes: b})
	}
	number := m.AddType(wasm.FuncType{Results: []byte{wasm.I32}})
	m.Funcs = []uint32{number, number}
	var area wasmCode
	area.put(wasm.I32Const, areaAt, 0).put(wasm.End, 0, 0)
	m.Code = []wasm.Code{{Locals: []wasm.LocalRun{{N: 4, Type: wasm.I32}}, Body: interpreterBody()}, {Body: area}}
	first := uint32(m.ImportedFuncs())
	for i, name := range []string{functionPrefix + "script", areaName, firstName} {
		m.Exports = append(m.Exports, wasm.Export{Name: name, Kind: wasm.KindFunc, Index: first + uint32(min(i, 1))})
	}
	return m.Encode()
}

// wasmCode is instructions, one after the other.
type wasmCode []byte

func (c *wasmCode) put(op wasm.Op, a, b uint64) *wasmCode {
	in := wasm.Instr{Op: op, A: a, B: b}
	*c = in.Append(*c)
	return c
}

// Instructions that nobody else has to know by name, and the interpreter's locals.
const (
	i32RemU    = wasm.Op(0x70)
	i32Load16U = wasm.Op(0x2f)

	localPC, localEnd, localPlace, localLeft = 0, 1, 2, 3
)

// interpreterBody is a loop around as many blocks as there are steps, of which a table of branches leaves some: what
// stands behind the last of these is the step.
func interpreterBody() []byte {
	c := new(wasmCode)
	lengthAt := 8 + 4*uint64(len(scriptKeys)) // in the block
	c.put(wasm.I32Const, areaAt, 0).put(wasm.I32Load, 0, 0).put(wasm.LocalTee, localPC, 0)
	c.put(wasm.I32Load, 0, lengthAt)
	c.put(wasm.LocalGet, localPC, 0).put(wasm.I32Const, uint64(scriptAt), 0).put(wasm.I32Add, 0, 0).put(wasm.LocalTee, localPC, 0)
	c.put(wasm.I32Add, 0, 0).put(wasm.LocalSet, localEnd, 0)
	c.put(wasm.I32Const, stepsMost, 0).put(wasm.LocalSet, localLeft, 0)
	c.put(wasm.Block, wasm.EmptyBlock, 0).put(wasm.Loop, wasm.EmptyBlock, 0)
	c.put(wasm.LocalGet, localEnd, 0).put(wasm.LocalGet, localPC, 0).put(wasm.I32Const, stepBytes, 0).put(wasm.I32Add, 0, 0)
	c.put(wasm.I32LtU, 0, 0).put(wasm.BrIf, 1, 0)
	c.put(wasm.LocalGet, localLeft, 0).put(wasm.I32Eqz, 0, 0).put(wasm.BrIf, 1, 0)
	c.put(wasm.LocalGet, localLeft, 0).put(wasm.I32Const, 1, 0).put(wasm.I32Sub, 0, 0).put(wasm.LocalSet, localLeft, 0)
	c.put(wasm.LocalGet, localPC, 0).put(i32Load16U, 0, 1).put(wasm.LocalSet, localPlace, 0)
	c.branches()
	for i := range steps {
		c.put(wasm.End, 0, 0)
		c.step(i)
		c.put(wasm.Br, uint64(len(steps)-1-i), 0)
	}
	c.put(wasm.End, 0, 0).put(wasm.End, 0, 0).put(wasm.I32Const, 0, 0).put(wasm.End, 0, 0)
	return *c
}

// branches opens a block for each step, and goes to the end of the right one.
func (c *wasmCode) branches() {
	labels := make([]uint32, len(steps)+1) // The last one is for what cannot be.
	for i := range steps {
		c.put(wasm.Block, wasm.EmptyBlock, 0)
		labels[i] = uint32(i)
	}
	c.put(wasm.LocalGet, localPC, 0).put(wasm.I32Load8U, 0, 0).put(wasm.I32Const, uint64(len(steps)), 0).put(i32RemU, 0, 0)
	in := wasm.Instr{Op: wasm.BrTable, Labels: labels}
	*c = in.Append(*c)
}

// step loads the operands of a step, goes on behind them, and executes it.
func (c *wasmCode) step(i int) {
	s := steps[i]
	if s.result != "" {
		c.put(wasm.LocalGet, localPlace, 0)
	}
	size := uint64(stepBytes)
	for _, p := range s.params {
		c.put(wasm.LocalGet, localPC, 0)
		if p == 'l' {
			c.put(wasm.I64Load, 0, size)
			size += 8
		} else {
			c.put(wasm.I32Load, 0, size)
			size += 4
		}
	}
	c.put(wasm.LocalGet, localPC, 0).put(wasm.I32Const, size, 0).put(wasm.I32Add, 0, 0).put(wasm.LocalSet, localPC, 0)
	switch s.name {
	case "grow":
		c.put(wasm.MemoryGrow, 0, 0)
	case "store":
	case "return":
		c.put(wasm.Return, 0, 0)
	case "trap":
		c.put(wasm.Unreachable, 0, 0)
	default:
		c.put(wasm.Call, uint64(i), 0)
	}
	switch s.result {
	case "i":
		c.put(wasm.I32Store, 0, 0)
	case "l":
		c.put(wasm.I64Store, 0, 0)
	}
}

// script is steps that are written one after the other.
type script []byte

func (s script) do(name string, place uint16, operands ...uint64) script {
	i, ok := stepNumber[name]
	if !ok || len(operands) != len(steps[i].params) {
		panic(fmt.Sprint("no step ", name, operands))
	}
	s = binary.LittleEndian.AppendUint16(append(slices.Clip(s), byte(i)), place) // Others may go on from the same script.
	for n, p := range steps[i].params {
		if p == 'l' {
			s = binary.LittleEndian.AppendUint64(s, operands[n])
		} else {
			s = binary.LittleEndian.AppendUint32(s, uint32(operands[n]))
		}
	}
	return s
}

// String tells the steps, one a line.
func (s script) String() string {
	var b strings.Builder
	all := append(slices.Clone(s), make([]byte, 64)...) // What the last one lacks is zero.
	for at := 0; at+stepBytes <= len(s); {
		step := steps[int(all[at])%len(steps)]
		fmt.Fprintf(&b, "\n  %d = %s", binary.LittleEndian.Uint16(all[at+1:]), step.name)
		at += stepBytes
		for _, p := range step.params {
			if p == 'l' {
				fmt.Fprintf(&b, " %d", binary.LittleEndian.Uint64(all[at:]))
				at += 8
			} else {
				fmt.Fprintf(&b, " %d", binary.LittleEndian.Uint32(all[at:]))
				at += 4
			}
		}
	}
	return b.String()
}

// meanings are what operands are usually: t a table, K a key and its length, B memory and its length, p a pointer,
// L a list and its length, v a view, h a buffer, n a length, o a small number, x a time to live.
var meanings = map[string]string{
	"args": "B", "get": "tKB", "read": "voB", "multiget": "tLpB", "alloc": "tKn", "fill": "hoB", "put": "hx", "set": "tKBx", "del": "tK",
	"scan": "tpKBo", "resp": "B", "log": "oB", "random": "B", "fail": "oB",
	"args_sizes_get": "pp", "environ_sizes_get": "pp", "clock_res_get": "op", "clock_time_get": "oxp", "random_get": "B", "fd_write": "oLp",
	"fd_fdstat_get": "op", "poll_oneoff": "ppop", "proc_exit": "o", "grow": "o", "return": "o", "store": "x",
}

// author writes scripts that make sense, mostly.
type author struct {
	*rand.Rand
	reads   bool     // and does not write
	views   int      // that there are, if all goes well
	buffers []uint64 // that are open
	made    uint64   // of them
}

func randomScript(r *rand.Rand, h how) script {
	var s script
	a := &author{Rand: r, reads: h.has(forReading)}
	for range 1 + r.IntN(24) {
		step := steps[a.choose()]
		operands := a.operands(step)
		s = s.do(step.name, uint16(a.place()), operands...)
		a.note(step.name, operands)
	}
	if r.IntN(8) == 0 {
		s[r.IntN(len(s))] = byte(r.Uint32())
	}
	return s
}

// choose takes calls of the host most of the time, and seldom one that cannot succeed.
func (a *author) choose() int {
	switch a.IntN(40) {
	case 0, 1, 2, 3:
		return len(hostCalls) + a.IntN(len(wasiCalls))
	case 4:
		return a.IntN(len(steps))
	case 5, 6:
		return stepNumber["store"]
	}
	i := a.IntN(len(hostCalls) - 1)
	switch name := hostCalls[i].name; {
	case name == "read" && a.views == 0:
		return stepNumber["get"]
	case (name == "fill" || name == "put") && len(a.buffers) == 0:
		return stepNumber["alloc"]
	}
	return i
}

// note keeps in mind what a step has made.
func (a *author) note(step string, operands []uint64) {
	switch step {
	case "get":
		if operands[0] == 0 && operands[2] == 6 { // A huge value, or one that gets longer and longer.
			a.views++
		}
	case "alloc":
		if !a.reads && operands[0] < 2 {
			a.buffers = append(a.buffers, a.made)
			a.made++
		}
	case "put":
		if n := len(a.buffers); n > 0 {
			a.buffers = a.buffers[:n-1]
		}
	}
}

// place is somewhere in memory, often where it matters.
func (a *author) place() uint64 {
	switch a.IntN(12) {
	case 0:
		return uint64(areaAt + 4*a.IntN(10))
	case 1:
		return wordsAt + uint64(a.IntN(len(wordBytes)))
	case 2:
		return uint64(blockAt + a.IntN(500))
	case 3:
		return uint64(a.IntN(pageBytes))
	}
	return uint64(freeAt + 16*a.IntN(64))
}

func (a *author) operands(s hostCall) []uint64 {
	var all []uint64
	for _, m := range meanings[s.name] {
		all = append(all, a.operand(m)...)
	}
	for len(all) < len(s.params) {
		all = append(all, a.Uint64()>>a.IntN(64))
	}
	for i := range all {
		if a.IntN(100) == 0 {
			all[i] = interesting[a.IntN(len(interesting))]
		}
	}
	return all
}

// operand is one or two of them.
func (a *author) operand(meaning rune) []uint64 {
	switch meaning {
	case 't':
		return []uint64{uint64(max(0, a.IntN(12)-9))}
	case 'K':
		w := words[a.IntN(len(words))]
		return []uint64{wordAt[w], uint64(len(w))}
	case 'B':
		return []uint64{a.place(), uint64(a.IntN(16) << a.IntN(9))}
	case 'p':
		return []uint64{a.place()}
	case 'L':
		from := a.IntN(len(words))
		return []uint64{listAt + uint64(8*from), uint64(a.IntN(len(words) - from + 1))}
	case 'v':
		return []uint64{1 + uint64(a.IntN(max(1, a.views)))}
	case 'h':
		if n := len(a.buffers); n > 0 {
			return []uint64{a.buffers[n-1]}
		}
	case 'n':
		return []uint64{uint64(a.IntN(16) << a.IntN(12))}
	case 'x':
		return []uint64{uint64(a.IntN(3) * a.IntN(1000))}
	}
	return []uint64{uint64(a.IntN(4))}
}
