#include "textflag.h"

// func Loads()
TEXT ·Loads(SB), NOSPLIT, $0-0
	DMB $0x9 // ISHLD
	RET

// func Stores()
TEXT ·Stores(SB), NOSPLIT, $0-0
	DMB $0xa // ISHST
	RET
