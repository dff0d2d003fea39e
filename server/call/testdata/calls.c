// Functions for tests of calls, built by build.sh.
#include "../../../tenant/extension/testdata/ostro.h"

static u8 buf[65536], zeros[8192];
static volatile u32 sink;

static void spin(u32 rounds) {
  for (u32 i = 0; i < rounds; i++) sink += i;
}

// number reads an argument as a decimal number.
static u32 number(u32 i) {
  u32 n, v = 0;
  const u8 *p = arg(i, &n);
  for (u32 j = 0; j < n; j++) v = v * 10 + (p[j] - '0');
  return v;
}

static u32 keys(void) { return ((u32 *)argbuf)[0]; }

// look: the value of the key.
FN(look) {
  u32 n;
  args(argbuf, sizeof argbuf);
  const u8 *k = arg(0, &n);
  i64 r = get(0, k, n, buf, sizeof buf);
  if (r < 0) return (i32)-r;
  u32 view = (u32)(r >> 32), len = (u32)r;
  if (!view) return resp(buf, len);
  for (u32 at = 0; at < len;) {
    i32 got = view_read(view, at, buf, sizeof buf);
    if (got <= 0) return 99;
    resp(buf, (u32)got);
    at += (u32)got;
  }
  return 0;
}

// count: adds one to the counter at the key, after as many rounds of work as the argument says.
FN(count) {
  u32 n;
  u64 v = 0;
  args(argbuf, sizeof argbuf);
  const u8 *k = arg(0, &n);
  i64 r = get(0, k, n, &v, 8);
  if (r < -1) return (i32)-r;
  spin(number(1));
  v++;
  set(0, k, n, &v, 8, 0);
  return resp(&v, 8);
}

// pay: moves one from the counter at the first key to that at the second, after rounds of work; the response is their sum.
FN(pay) {
  u32 n, m;
  u64 a = 0, b = 0;
  args(argbuf, sizeof argbuf);
  const u8 *from = arg(0, &n), *to = arg(1, &m);
  i64 r = get(0, from, n, &a, 8), q = get(0, to, m, &b, 8);
  if (r < -1) return (i32)-r;
  if (q < -1) return (i32)-q;
  spin(number(2));
  a--;
  b++;
  set(0, from, n, &a, 8, 0);
  set(0, to, m, &b, 8, 0);
  a += b;
  return resp(&a, 8);
}

// total: the sum of the counters at all keys.
FN(total) {
  u64 sum = 0;
  args(argbuf, sizeof argbuf);
  for (u32 i = 0; i < keys(); i++) {
    u32 n;
    u64 v = 0;
    const u8 *k = arg(i, &n);
    i64 r = get(0, k, n, &v, 8);
    if (r < -1) return (i32)-r;
    sum += v;
  }
  return resp(&sum, 8);
}

// put: sets the key to the argument; with a second argument in the table of that number.
FN(put) {
  u32 n, m;
  args(argbuf, sizeof argbuf);
  const u8 *k = arg(0, &n), *v = arg(1, &m);
  u32 table = ((u32 *)argbuf)[1] > 1 ? number(2) : 0;
  i32 st = set(table, k, n, v, m, 0);
  return st < 0 ? -st : 0;
}

// peek: the value of the key in the table that the argument says.
FN(peek) {
  u32 n;
  args(argbuf, sizeof argbuf);
  const u8 *k = arg(0, &n);
  i64 r = get(number(1), k, n, buf, sizeof buf);
  if (r < 0) return (i32)-r;
  return resp(buf, (u32)r);
}

// list: the keys that begin with the argument, by a buffer of as many bytes as the second argument says.
FN(list) {
  u32 n;
  u64 cursor = 0;
  args(argbuf, sizeof argbuf);
  u32 first = keys();
  const u8 *prefix = arg(first, &n);
  u32 room = number(first + 1);
  do {
    i32 got = scan(0, &cursor, prefix, n, buf, room, 1);
    if (got < 0) return -got;
    u8 *at = buf;
    for (i32 i = 0; i < got; i++) {
      u32 kl = ((u32 *)at)[0], vl = ((u32 *)at)[1];
      resp(at + 8, kl);
      resp(" ", 1);
      at += 8 + kl + vl;
    }
  } while (cursor);
  return 0;
}

// mess: writes both keys, then ends as the argument says.
FN(mess) {
  u32 n, m, how;
  args(argbuf, sizeof argbuf);
  const u8 *a = arg(0, &n), *b = arg(1, &m), *h = arg(2, &how);
  i32 st = set(0, a, n, "broken", 6, 0);
  if (st >= 0) st = set(0, b, m, "broken", 6, 0);
  if (st < 0) return -st;
  switch (h[0]) {
  case 't': __builtin_trap();
  case 'f': fail(42, "no\r\nmoney", 9);
  case 'r': return 7;
  case 'l': for (;;) sink++;
  }
  return 0;
}

// long: runs until it is ended.
FN(endless) {
  for (;;) sink++;
}

// answer: as many bytes as the argument says, and a write of the key.
FN(answer) {
  u32 n;
  args(argbuf, sizeof argbuf);
  const u8 *k = arg(0, &n);
  set(0, k, n, "x", 1, 0);
  return resp(zeros, number(1));
}

// take: adds one to the counter at the key if it is below the argument, after rounds of work; the response is yes or no.
FN(take) {
  u32 n;
  u64 v = 0;
  args(argbuf, sizeof argbuf);
  const u8 *k = arg(0, &n);
  get(0, k, n, &v, 8);
  spin(number(2));
  if (v >= number(1)) return resp("no", 2);
  v++;
  set(0, k, n, &v, 8, 0);
  return resp("yes", 3);
}
