#include "textflag.h"

// func Loads()
TEXT ·Loads(SB), NOSPLIT, $0-0
	DMB $0x9 // ISHLD
	RET

// func Stores()
TEXT ·Stores(SB), NOSPLIT, $0-0
	DMB $0xa // ISHST
	RET

// func Publish(p *uint64, v uint64)
TEXT ·Publish(SB), NOSPLIT, $0-16
	MOVD p+0(FP), R0
	MOVD v+8(FP), R1
	STLR R1, (R0)
	RET
