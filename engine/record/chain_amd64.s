#include "textflag.h"

// func chainHeaders(sum uint32, p unsafe.Pointer, n int) uint32
//
// AX is the sum, SI the entry, CX the bytes left, DX the entry's length.
TEXT ·chainHeaders(SB), NOSPLIT, $0-28
	MOVL sum+0(FP), AX
	MOVQ p+8(FP), SI
	MOVQ n+16(FP), CX
	NOTL AX
	TESTQ CX, CX
	JLE  done

entry:
	MOVL 4(SI), DX
	CRC32Q (SI), AX
	CMPQ DX, $24
	JLT  next                     // A short void has no more.
	CRC32Q 8(SI), AX
	CRC32Q 16(SI), AX

next:
	ADDQ DX, SI
	SUBQ DX, CX
	JGT  entry

done:
	NOTL AX
	MOVL AX, ret+24(FP)
	RET
