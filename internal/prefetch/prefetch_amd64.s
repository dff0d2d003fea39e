#include "textflag.h"

// func T0(p unsafe.Pointer)
TEXT ·T0(SB), NOSPLIT, $0-8
	MOVQ p+0(FP), AX
	PREFETCHT0 (AX)
	RET

// func all(at *uintptr, n int)
TEXT ·all(SB), NOSPLIT, $0-16
	MOVQ at+0(FP), SI
	MOVQ n+8(FP), CX
next:
	MOVQ (SI), AX
	PREFETCHT0 (AX)
	ADDQ $8, SI
	DECQ CX
	JNZ  next
	RET

// func Stack(bytes int)
TEXT ·Stack(SB), NOSPLIT, $0-8
	MOVQ bytes+0(FP), CX
	MOVQ SP, AX
below:
	SUBQ $64, AX
	PREFETCHT0 (AX)
	SUBQ $64, CX
	JGT  below
	RET

// func Lines(p unsafe.Pointer, n int)
TEXT ·Lines(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ n+8(FP), CX
more:
	PREFETCHT0 (AX)
	ADDQ $64, AX
	DECQ CX
	JNZ  more
	RET
