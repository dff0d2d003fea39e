#include "textflag.h"

// crc16Reverse[0:16] turns a register around. Read from 16-r on it does so with
// r bytes and makes the others zero.
DATA crc16Reverse<>+0(SB)/8, $0x08090a0b0c0d0e0f
DATA crc16Reverse<>+8(SB)/8, $0x0001020304050607
DATA crc16Reverse<>+16(SB)/8, $0x8080808080808080
DATA crc16Reverse<>+24(SB)/8, $0x8080808080808080
GLOBL crc16Reverse<>(SB), RODATA|NOPTR, $32

// func crc16Multiply(b []byte) uint16
//
// X0 sums the products, X4 and X6 hold the constants of the reduction, X5
// reverses. DX counts the blocks behind the current one, DI points at the
// powers of the current one.
TEXT ·crc16Multiply(SB), NOSPLIT, $0-26
	MOVQ b_base+0(FP), SI
	MOVQ b_len+8(FP), CX
	LEAQ -1(CX), DX
	SHRQ $4, DX
	MOVQ DX, AX
	SHLQ $4, AX
	SUBQ AX, CX                   // Bytes of the first block, 1 to 16.
	LEAQ ·crc16Powers(SB), DI
	ADDQ AX, DI
	LEAQ crc16Reverse<>+16(SB), R8
	SUBQ CX, R8
	MOVOU (R8), X1
	MOVOU (SI), X0
	PSHUFB X1, X0
	MOVOU (DI), X2
	MOVO X0, X3
	PCLMULQDQ $0x00, X2, X0
	PCLMULQDQ $0x11, X2, X3
	PXOR X3, X0
	ADDQ CX, SI
	MOVOU crc16Reverse<>+0(SB), X5
	TESTQ DX, DX
	JZ   reduce

block:
	SUBQ $16, DI
	MOVOU (SI), X1
	PSHUFB X5, X1
	MOVOU (DI), X2
	MOVO X1, X3
	PCLMULQDQ $0x00, X2, X1
	PCLMULQDQ $0x11, X2, X3
	PXOR X1, X0
	PXOR X3, X0
	ADDQ $16, SI
	DECQ DX
	JNZ  block

reduce:
	MOVOU ·crc16Reduction+0(SB), X4
	MOVOU ·crc16Reduction+16(SB), X6
	MOVO X0, X1
	PCLMULQDQ $0x01, X4, X1       // What stands above bit 63 ...
	PXOR X1, X0                   // ... comes down.
	MOVO X0, X1
	PSRLQ $16, X1
	PCLMULQDQ $0x10, X4, X1
	PSRLO $6, X1                  // The quotient by the polynomial ...
	PCLMULQDQ $0x00, X6, X1
	PXOR X1, X0                   // ... times it, taken away.
	MOVQ X0, AX
	MOVW AX, ret+24(FP)
	RET
