// Functions that do harm, or try to.
#include "ostro.h"

static volatile u32 sink;
static u8 big[1 << 20];

FN(loop) {
  for (;;) sink++;
}
FN(tightloop) {
  __asm__ volatile("loop\nbr 0\nend_loop" ::: "memory");
  return 0;
}
static __attribute__((noinline)) u32 deeper(u32 n) {
  volatile u32 here[16];
  here[n & 15] = n;
  return deeper(n + 1) + here[n & 15];
}
FN(recursion) { return (i32)deeper(0); }

typedef u32 (*fun)(u32);
static u32 ping(u32 n);
static u32 pong(u32 n);
static volatile fun either[2] = {ping, pong};
static __attribute__((noinline)) u32 ping(u32 n) { return either[(n + 1) & 1](n + 1) + 1; }
static __attribute__((noinline)) u32 pong(u32 n) { return either[(n + 1) & 1](n + 1) + 2; }
FN(pingpong) { return (i32)either[0](0); }

// hoard: takes memory until there is none, and uses it.
FN(hoard) {
  u32 pages = 0;
  while (__builtin_wasm_memory_grow(0, 1) != (u32)-1) {
    u8 *p = (u8 *)((__builtin_wasm_memory_size(0) - 1) << 16);
    for (u32 i = 0; i < 65536; i += 4096) p[i] = 1;
    pages++;
  }
  return resp(&pages, 4);
}
FN(growflood) {
  for (;;) sink += __builtin_wasm_memory_grow(0, 60000);
}
FN(bigfill) {
  for (;;) __builtin_memset(big, (int)sink++, sizeof big);
}
FN(bigcopy) {
  for (;;) __builtin_memmove(big, big + 4096, sizeof big - 4096);
}
FN(giantresponse) {
  for (;;) resp(big, sizeof big);
}
FN(hostflood) {
  for (;;) sink += (u32)now();
}
FN(logflood) {
  for (u32 i = 0; i < 1000; i++) say(1, big, 1000);
  return 0;
}
FN(writeflood) {
  for (u32 i = 0;; i++) set(0, &i, 4, big, 1000, 0);
}
FN(bufferflood) {
  for (u32 i = 0;; i++) value_alloc(0, &i, 4, 0);
}
FN(viewflood) {
  for (;;) sink += (u32)get(0, "large", 5, 0, 0);
}
FN(randomflood) {
  for (;;) chance(big, sizeof big);
}
FN(scanflood) {
  for (;;) {
    u64 cursor = 0;
    sink += (u32)scan(0, &cursor, "", 0, big, sizeof big, 1);
  }
}
FN(trap) { __builtin_trap(); }
FN(wildread) { return *(volatile i32 *)0xfffffff0u; }
FN(wildpointer) { return resp((void *)0xffff0000u, 0x20000); }
FN(wildkey) { return (i32)get(0, (void *)0xfffffff0u, 100, big, 4); }
FN(wildbuffer) { return value_fill(12345, 0, big, 4); }
FN(wildview) { return view_read(77, 0, big, 4); }
FN(overfill) {
  i32 b = value_alloc(0, "k", 1, 4);
  return value_fill(b, 0xffffffffu, big, 4);
}
FN(twice) {
  i32 b = value_alloc(0, "k", 1, 4);
  value_put(b, 0);
  return value_put(b, 0);
}
FN(hugevalue) { return value_alloc(0, "k", 1, 0xffffffffu); }
FN(manykeys) { return multiget(0, big, 0xffffffffu, big, big, 4); }
