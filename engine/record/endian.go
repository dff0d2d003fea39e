//go:build armbe || arm64be || m68k || mips || mips64 || mips64p32 || ppc || ppc64 || s390 || s390x || shbe || sparc || sparc64

package record

// Entries are read in place with the machine's own loads. Refuse to compile
// where those would read every number backwards.
var _ = ostroNeedsALittleEndianMachine
