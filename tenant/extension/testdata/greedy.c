// Functions that have the host work for nothing.
#include "ostro.h"

static u8 big[1 << 20];
static volatile u32 sink;

// cutargs: asks for the beginning of long arguments.
FN(cutargs) {
  for (;;) sink += args(big, 16);
}
// longkeys: reads keys that are as long as keys can be, another one each time.
FN(longkeys) {
  for (u32 i = 0;; i++) {
    *(u32 *)big = i;
    sink += (u32)get(0, big, 65535, 0, 0);
  }
}
// longmultigets: the same, by lists.
FN(longmultigets) {
  static u32 list[2 * 64], found[4 * 64];
  for (u32 i = 0; i < 64; i++) list[2 * i] = (u32)big + i, list[2 * i + 1] = 65535;
  for (;;) sink += (u32)multiget(0, list, 64, found, 0, 0);
}
// longprefix: looks for keys that begin with what is longer than any.
FN(longprefix) {
  u64 cursor = 0;
  return (i32)scan(0, &cursor, big, sizeof big, big, 0, 0);
}
// nothingfound: looks through all keys for none of them.
FN(nothingfound) {
  for (u64 cursor = 0;;) sink += (u32)scan(0, &cursor, "nobody", 6, big, sizeof big, 0);
}
// ownvalue: reads what it has written.
FN(ownvalue) {
  set(0, "k", 1, big, sizeof big, 0);
  for (;;) sink += (u32)get(0, "k", 1, big, sizeof big);
}
// oddpieces: answers in pieces of all lengths, each of them another part of the same bytes.
FN(oddpieces) {
  for (u32 i = 0; i < sizeof big; i++) big[i] = (u8)(i * 7 + (i >> 8));
  for (u32 i = 0; i < 60; i++) resp(big + i, i * 7919 % 70001);
  return 0;
}
