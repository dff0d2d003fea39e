#include "go_asm.h"
#include "textflag.h"

DATA braces<>+0(SB)/8, $0x7b7b7b7b7b7b7b7b
DATA braces<>+8(SB)/8, $0
GLOBL braces<>(SB), RODATA|NOPTR, $16

// x^80 divided by the polynomial of the slots' CRC, less x^64.
DATA quotient<>+0(SB)/8, $0x11303471a041b343
GLOBL quotient<>(SB), RODATA|NOPTR, $8

// func leap(ss *Session, t *table, key uint64) (p record.Ptr, word uint64, state uint32)
//
// SI is the key, DI the table, BX the session, AX the place.
TEXT ·leap(SB), NOSPLIT, $0-44
	MOVQ ss+0(FP), BX
	MOVQ t+8(FP), DI
	MOVQ key+16(FP), SI
	MOVQ SI, X0
	PCMPEQB braces<>(SB), X0
	PMOVMSKB X0, AX
	TESTB AL, AL
	JNE  none

	// The slot is the remainder of the key times x^16. Its division by the
	// polynomial, x^16+x^12+x^5+1, is a product without carries; of the quotient
	// times the polynomial only the low bits count.
	MOVQ SI, AX
	BSWAPQ AX
	MOVQ AX, X1
	MOVQ quotient<>(SB), X2
	PCLMULQDQ $0, X2, X1
	PSRLO $8, X1
	MOVQ X1, DX
	XORQ AX, DX
	MOVQ DX, CX
	SHLQ $7, DX
	XORQ CX, DX
	SHLQ $5, DX
	XORQ DX, CX
	SHLQ $50, CX

	// The hash: see xxh8 of package record.
	RORXQ $32, SI, AX
	XORQ table_secret(DI), AX
	RORXQ $15, AX, DX
	RORXQ $40, AX, R8
	XORQ DX, AX
	XORQ R8, AX
	MOVQ $0x9fb21c651e98df25, R8
	IMULQ R8, AX
	MOVQ AX, DX
	SHRQ $35, DX
	ADDQ $8, DX
	XORQ DX, AX
	IMULQ R8, AX
	MOVQ AX, DX
	SHRQ $28, DX
	XORQ DX, AX
	SHRQ $14, AX
	ORQ  CX, AX

	// The sub-table, where the directory has one level.
	MOVQ Session_root(BX), R8
	MOVQ (R8), R8
	MOVQ R8, CX
	NEGQ CX
	SHRXQ CX, AX, R9
	ANDQ $~const_leapKindBits, R8
	MOVQ (R8)(R9*8), R8
	TESTB $const_leapKindBits, R8
	JNE  none

	// The first word of the bucket that has the tag.
	MOVL AX, R9
	ANDL $const_leapBucket, R9
	SHLQ $6, R9
	LEAQ const_leapBuckets(R8)(R9*1), R8
	MOVQ AX, X3
	PSHUFLW $0xaa, X3, X3
	PUNPCKLQDQ X3, X3
	PCMPEQW const_leapTags(R8), X3
	PMOVMSKB X3, CX
	ANDL $const_leapTagBytes, CX
	JEQ  none
	CMPL const_leapMeta(R8), $0
	JLT  none
	BSFL CX, CX
	MOVQ (R8)(CX*4), R9
	XORQ R9, AX
	SHRQ $48, AX
	JNE  none
	TESTB $const_leapLocked, R9
	JNE  none

	// The segment's state first, then its base and the entry.
	MOVQ R9, word+32(FP)
	MOVL R9, CX
	ANDL $const_leapOffset, CX
	SHRQ $(23-4), R9
	ANDL $((1<<25-1)<<4), R9
	ADDQ Session_slots(BX), R9
	MOVL const_leapState(R9), DX
	MOVQ (R9), R8
	TESTQ R8, R8
	JEQ  none
	ADDQ CX, R8
	MOVL (R8), AX
	ANDL $const_leapPlainMask, AX
	CMPL AX, $const_leapPlain
	JNE  none
	MOVL table_id(DI), AX
	CMPL AX, const_leapOf(R8)
	JNE  none
	CMPQ SI, const_leapKey(R8)
	JNE  none
	MOVQ R8, p_p+24(FP)
	MOVL DX, state+40(FP)
	RET

none:
	MOVQ $0, p_p+24(FP)
	MOVQ $0, word+32(FP)
	MOVL $0, state+40(FP)
	RET
