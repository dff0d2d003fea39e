// Functions that behave.
#include "ostro.h"

static u8 buf[8192];
static u32 calls;

FN(empty) { return 0; }

// echo: the arguments as they came.
FN(echo) {
  u32 n = args(argbuf, sizeof argbuf);
  return resp(argbuf, n);
}

// get: the value of the key.
FN(get) {
  u32 n;
  args(argbuf, sizeof argbuf);
  const u8 *k = arg(0, &n);
  i64 r = get(0, k, n, buf, sizeof buf);
  if (r == -1) return resp("(absent)", 8);
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

// aggregate: the key's value is a list of keys of 8 bytes; the sum of the first 8 bytes of their values.
FN(aggregate) {
  u32 n;
  args(argbuf, sizeof argbuf);
  const u8 *k = arg(0, &n);
  i64 len = get(0, k, n, buf, sizeof buf);
  if (len < 0) return 1;
  u64 sum = 0;
  for (u32 at = 0; at + 8 <= (u32)len; at += 8) {
    u64 v[16];
    if (get(0, buf + at, 8, v, sizeof v) < 8) return 2;
    sum += v[0];
  }
  return resp(&sum, 8);
}

// incr: adds one to a counter of 8 bytes by alloc, fill and put; the response is what it is now, read again.
FN(incr) {
  u32 n;
  args(argbuf, sizeof argbuf);
  const u8 *k = arg(0, &n);
  u64 v = 0, again = 0;
  get(0, k, n, &v, 8);
  v++;
  i32 b = value_alloc(0, k, n, 8);
  if (b < 0) return -b;
  value_fill(b, 0, &v, 4);
  value_fill(b, 4, (u8 *)&v + 4, 4);
  value_put(b, 0);
  if (get(0, k, n, &again, 8) != 8) return 50;
  return resp(&again, 8);
}

// transfer: writes two keys, deletes a third, then does what its second argument says.
FN(transfer) {
  u32 n;
  args(argbuf, sizeof argbuf);
  const u8 *how = arg(1, &n);
  set(0, "a", 1, "1", 1, 0);
  set(0, "b", 1, "2", 1, 60000);
  del(0, "c", 1);
  if (get(0, "c", 1, buf, 8) != -1) return 77;
  switch (n ? how[0] : 'k') {
  case 't': __builtin_trap();
  case 'f': fail(42, "no money", 8);
  case 'r': return 7;
  case 'l': for (;;) calls++;
  }
  return 0;
}

// multiget: all arguments but the first as keys.
FN(multiget) {
  u32 keys[64], results[128], n = 0;
  args(argbuf, sizeof argbuf);
  u32 all = ((u32 *)argbuf)[0] + ((u32 *)argbuf)[1];
  for (u32 i = 0; i < all && i < 32; i++) {
    u32 len;
    keys[2 * i] = (u32)arg(i, &len);
    keys[2 * i + 1] = len;
    n++;
  }
  i32 found = multiget(0, keys, n, results, buf, 64);
  for (u32 i = 0; i < n; i++) {
    i32 len = (i32)results[4 * i + 1];
    if (len < 0) {
      resp("-", 1);
    } else if (results[4 * i]) {
      resp((void *)results[4 * i], (u32)len);
    } else {
      u8 first[8];
      i32 got = view_read(results[4 * i + 2], 0, first, 8);
      resp("~", 1);
      resp(first, (u32)got);
    }
    resp(",", 1);
  }
  return found >= 0 ? 0 : 1;
}

// scan: the keys that begin with the key, and their values.
FN(scan) {
  u32 n;
  u64 cursor = 0;
  args(argbuf, sizeof argbuf);
  const u8 *prefix = arg(0, &n);
  do {
    i32 got = scan(0, &cursor, prefix, n, buf, 64, 1);
    if (got == -3) continue;
    if (got < 0) return -got;
    u8 *at = buf;
    for (i32 i = 0; i < got; i++) {
      u32 kl = ((u32 *)at)[0], vl = ((u32 *)at)[1];
      resp(at + 8, kl);
      resp("=", 1);
      resp(at + 8 + kl, vl);
      resp(";", 1);
      at += 8 + kl + vl;
    }
  } while (cursor);
  return 0;
}

// state: how often this instance was called.
FN(state) {
  calls++;
  return resp(&calls, 4);
}

// clock: time, random bytes, a line for the log.
FN(clock) {
  i64 t = now();
  u8 r[8];
  chance(r, 8);
  say(1, "hello", 5);
  yield();
  resp(&t, 8);
  return resp(r, 8);
}

// burn: as many rounds as the first argument's 4 bytes say.
FN(burn) {
  u32 n, rounds = 0;
  args(argbuf, sizeof argbuf);
  const u8 *a = arg(1, &n);
  for (u32 i = 0; i < n && i < 4; i++) rounds |= (u32)a[i] << (8 * i);
  u32 x = 1;
  for (u32 i = 0; i < rounds; i++) x = x * 1664525 + 1013904223;
  return resp(&x, 4);
}
