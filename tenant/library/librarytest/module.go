// Package librarytest makes small modules for tests of whoever installs them.
package librarytest

import "encoding/binary"

const (
	functionKind = 0
	memoryKind   = 2
)

// Module is a module whose functions respond with a text, whoever calls them.
func Module(text string, functions ...string) []byte {
	answer := join([]byte{0, 0x41, 0, 0x41}, signed(len(text)), []byte{0x10, 0, 0x1a, 0x41, 0, 0x0b}) // resp(0, len); return 0
	uses, bodies := [][]byte{}, [][]byte{}
	exports := [][]byte{join(named("memory"), []byte{memoryKind, 0})}
	for i, name := range functions {
		uses = append(uses, []byte{0})
		bodies = append(bodies, sized(answer))
		exports = append(exports, join(named("ostro_fn_"+name), []byte{functionKind}, unsigned(i+1)))
	}
	return join([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, []byte{0x60, 0, 1, 0x7f}, []byte{0x60, 2, 0x7f, 0x7f, 1, 0x7f}), // () -> i32, (i32, i32) -> i32
		section(2, join(named("ostro"), named("resp"), []byte{functionKind, 1})),
		section(3, uses...),
		section(5, join([]byte{0}, unsigned(len(text)/65536+1))),
		section(7, exports...),
		section(10, bodies...),
		section(11, join([]byte{0, 0x41, 0, 0x0b}, named(text))),
	)
}

// Logging is a module with one function, which writes a line to its log.
func Logging(line, function string) []byte {
	body := join([]byte{0, 0x41, 1, 0x41, 0, 0x41}, signed(len(line)), []byte{0x10, 0, 0x41, 0, 0x0b}) // log(1, 0, len); return 0
	return join([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, []byte{0x60, 0, 1, 0x7f}, []byte{0x60, 3, 0x7f, 0x7f, 0x7f, 0}), // () -> i32, (i32, i32, i32) -> ()
		section(2, join(named("ostro"), named("log"), []byte{functionKind, 1})),
		section(3, []byte{0}),
		section(5, []byte{0, 1}),
		section(7, join(named("memory"), []byte{memoryKind, 0}), join(named("ostro_fn_"+function), []byte{functionKind, 1})),
		section(10, sized(body)),
		section(11, join([]byte{0, 0x41, 0, 0x0b}, named(line))),
	)
}

func section(id byte, items ...[]byte) []byte {
	return join([]byte{id}, sized(join(unsigned(len(items)), join(items...))))
}

func named(s string) []byte { return sized([]byte(s)) }

func sized(b []byte) []byte { return join(unsigned(len(b)), b) }

func unsigned(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }

// signed writes a number that is not negative as a signed one.
func signed(n int) []byte {
	b := unsigned(n)
	if last := len(b) - 1; b[last]&0x40 != 0 {
		b[last] |= 0x80
		b = append(b, 0)
	}
	return b
}

func join(parts ...[]byte) (all []byte) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}
