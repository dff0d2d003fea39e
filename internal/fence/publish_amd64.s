//go:build !race

#include "textflag.h"

// func Publish(p *uint64, v uint64)
//
// Stores become visible in their order; the call keeps the compiler from moving any.
TEXT ·Publish(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ v+8(FP), CX
	MOVQ CX, (AX)
	RET
