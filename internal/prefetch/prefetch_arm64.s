#include "textflag.h"

// func T0(p unsafe.Pointer)
TEXT ·T0(SB), NOSPLIT, $0-8
	MOVD p+0(FP), R0
	PRFM (R0), PLDL1KEEP
	RET

// func all(at *uintptr, n int)
TEXT ·all(SB), NOSPLIT, $0-16
	MOVD at+0(FP), R1
	MOVD n+8(FP), R2
next:
	MOVD.P 8(R1), R0
	PRFM   (R0), PLDL1KEEP
	SUBS   $1, R2
	BNE    next
	RET

// func Stack(bytes int)
TEXT ·Stack(SB), NOSPLIT, $0-8
	MOVD bytes+0(FP), R1
	MOVD RSP, R0
below:
	SUB  $64, R0
	PRFM (R0), PLDL1KEEP
	SUBS $64, R1
	BGT  below
	RET

// func Lines(p unsafe.Pointer, n int)
TEXT ·Lines(SB), NOSPLIT, $0-16
	MOVD p+0(FP), R0
	MOVD n+8(FP), R1
more:
	PRFM (R0), PLDL1KEEP
	ADD  $64, R0
	SUBS $1, R1
	BNE  more
	RET
