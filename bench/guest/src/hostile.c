// What `ostro bench splinter --parts kinds` has hostile tenants call. Its loop is guest.c's.
//
//   recursion   calls itself for ever
//   memory      takes and uses memory until there is none, then asks for more for ever
//   response    answers for ever
//   hostcalls   asks the host for the time for ever
//   trap        executes what cannot be executed
#include "ostro.h"

static volatile uint32_t sink;
static uint8_t page[65536];

static __attribute__((noinline)) uint32_t deeper(uint32_t n)
{
	volatile uint32_t here[16];
	here[n & 15] = n;
	if (sink == 1) // Never: the compiler does not know.
		return n;
	return deeper(n + 1) + here[n & 15];
}

OSTRO_FN(recursion)
{
	return (int32_t)deeper(0);
}

OSTRO_FN(memory)
{
	for (;;) {
		if (__builtin_wasm_memory_grow(0, 1) == (size_t)-1)
			continue;
		uint8_t *last = (uint8_t *)((__builtin_wasm_memory_size(0) - 1) << 16);
		__builtin_memset(last, 1, sizeof page);
	}
}

OSTRO_FN(response)
{
	for (;;)
		ostro_resp((ostro_bytes){page, sizeof page});
}

OSTRO_FN(hostcalls)
{
	for (;;)
		sink += (uint32_t)ostro_now();
}

OSTRO_FN(trap)
{
	__builtin_trap();
}
