// The host's functions, as docs/function-abi.md has them. For tests; authors of functions use the SDK.
typedef unsigned char u8;
typedef unsigned int u32;
typedef int i32;
typedef long long i64;
typedef unsigned long long u64;
#define HOST(name) __attribute__((import_module("ostro"), import_name(#name)))
#define FN(name) __attribute__((export_name("ostro_fn_" #name))) i32 fn_##name(void)

HOST(args) u32 args(void *buf, u32 cap);
HOST(get) i64 get(u32 table, const void *key, u32 key_len, void *buf, u32 cap);
HOST(read) i32 view_read(u32 view, u32 offset, void *buf, u32 len);
HOST(multiget) i32 multiget(u32 table, const void *keys, u32 n, void *results, void *buf, u32 cap);
HOST(alloc) i32 value_alloc(u32 table, const void *key, u32 key_len, u32 len);
HOST(fill) i32 value_fill(i32 buffer, u32 offset, const void *p, u32 len);
HOST(put) i32 value_put(i32 buffer, i64 ttl);
HOST(set) i32 set(u32 table, const void *key, u32 key_len, const void *p, u32 len, i64 ttl);
HOST(del) i32 del(u32 table, const void *key, u32 key_len);
HOST(scan) i32 scan(u32 table, void *cursor, const void *prefix, u32 prefix_len, void *buf, u32 cap, u32 flags);
HOST(resp) i32 resp(const void *p, u32 len);
HOST(yield) void yield(void);
HOST(log) void say(u32 level, const void *p, u32 len);
HOST(now) i64 now(void);
HOST(random) void chance(void *p, u32 len);
HOST(fail) void fail(i32 code, const void *p, u32 len);

// The n-th of keys and arguments together.
static u8 argbuf[4096];
static const u8 *arg(u32 n, u32 *len) {
  u32 all = ((u32 *)argbuf)[0] + ((u32 *)argbuf)[1];
  if (n >= all) {
    *len = 0;
    return 0;
  }
  u32 at = 8 + 4 * all;
  for (u32 i = 0; i < n; i++) at += ((u32 *)argbuf)[2 + i];
  *len = ((u32 *)argbuf)[2 + n];
  return argbuf + at;
}
