// Work of several kinds, to measure what metering costs. Build: see build.sh.
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
#define EXPORT(name) __attribute__((export_name(#name)))

static u8 data[65536];
static u32 table[4096];

// What is in data is known only at run time.
EXPORT(prepare) u32 prepare(u32 seed) {
  for (u32 i = 0; i < 65536; i++) data[i] = (u8)(seed = seed * 1664525 + 1013904223 >> 3) & 0x3f;
  return seed;
}

// The tightest loops.
EXPORT(sum) u32 sum(u32 n) {
  u32 s = 0;
  for (u32 i = 0; i < n; i++) {
    s += data[i & 65535];
  }
  return s;
}
EXPORT(xorshift) u32 xorshift(u32 n) {
  u32 x = 2463534242u;
  for (u32 i = 0; i < n; i++) {
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
  }
  return x;
}
EXPORT(spin) u32 spin(u32 n) {
  u32 x = 1;
  do {
    x = x * 3 + n;
  } while (--n);
  return x;
}

// A recursion.
EXPORT(fib) __attribute__((noinline)) u32 fib(u32 n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

// Usual work.
static u64 fnv(const u8 *p, u32 n) {
  u64 h = 14695981039346656037ull;
  for (u32 i = 0; i < n; i++) h = (h ^ p[i]) * 1099511628211ull;
  return h;
}
EXPORT(hash) u32 hash(u32 n) {
  u64 h = 0;
  for (u32 i = 0; i < n; i++) h += fnv(data + (i & 1023) * 32, 32);
  return (u32)h;
}
static void sift(u32 *a, u32 i, u32 n) {
  for (;;) {
    u32 c = 2 * i + 1;
    if (c >= n) return;
    if (c + 1 < n && a[c + 1] > a[c]) c++;
    if (a[i] >= a[c]) return;
    u32 t = a[i];
    a[i] = a[c];
    a[c] = t;
    i = c;
  }
}
EXPORT(heapsort) u32 heapsort(u32 n) {
  u32 x = 12345;
  for (u32 i = 0; i < n; i++) table[i] = x = x * 1664525 + 1013904223;
  for (u32 i = n / 2; i-- > 0;) sift(table, i, n);
  for (u32 i = n; i-- > 1;) {
    u32 t = table[0];
    table[0] = table[i];
    table[i] = t;
    sift(table, 0, i);
  }
  return table[0];
}
EXPORT(dot) u32 dot(u32 n) {
  const float *a = (const float *)data, *b = (const float *)(data + 32768);
  float s = 0;
  for (u32 k = 0; k < n; k++)
    for (u32 i = 0; i < 128; i++) s += a[(k & 31) * 128 + i] * b[i];
  return (u32)s;
}
// A little interpreter: a switch in a loop.
EXPORT(interpret) u32 interpret(u32 n) {
  static const u8 prog[] = {0, 3, 1, 7, 2, 4, 5, 1, 6, 3, 2, 0, 5, 4, 1, 6};
  u32 acc = 1, reg = 7;
  for (u32 i = 0; i < n; i++) {
    switch (prog[i & 15]) {
    case 0: acc += reg; break;
    case 1: reg ^= acc << 3; break;
    case 2: acc -= reg >> 1; break;
    case 3: reg = reg * 5 + 1; break;
    case 4: acc = (acc << 7) | (acc >> 25); break;
    case 5: table[acc & 4095] = reg; break;
    case 6: acc += table[reg & 4095]; break;
    default: reg += i;
    }
  }
  return acc + reg;
}
// Small functions called through a pointer.
static int less(u32 a, u32 b) { return a < b; }
static int more(u32 a, u32 b) { return a > b; }
typedef int (*order)(u32, u32);
static order orders[] = {less, more};
EXPORT(insertion) u32 insertion(u32 n) {
  order o = orders[n & 1];
  u32 x = n;
  for (u32 i = 0; i < n; i++) table[i] = x = x * 1664525 + 1013904223;
  for (u32 i = 1; i < n; i++)
    for (u32 j = i; j > 0 && o(table[j], table[j - 1]); j--) {
      u32 t = table[j];
      table[j] = table[j - 1];
      table[j - 1] = t;
    }
  return table[0];
}
