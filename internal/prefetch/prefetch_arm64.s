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
