// ostro.h: functions for Ostro in C. One header, no library.
//
//     #include "ostro.h"
//
//     OSTRO_FN(hello) {
//         ostro_resp_text("hello, ");
//         ostro_resp(ostro_arg(0));
//         return 0;
//     }
//
//     clang --target=wasm32 -O2 -mbulk-memory -ffreestanding -c hello.c
//     wasm-ld --no-entry --stack-first -z stack-size=16384 --strip-all -o hello.wasm hello.o
//
// What must hold:
//   - Memory of a call (values, arguments, ostro_mem) is valid until the
//     function returns and gone after it: OSTRO_FN begins every call with all of
//     it free. Static variables stay, as a cache only: calls of one function run
//     in several instances, and each may be thrown away.
//   - A function's writes are applied when it has returned 0, all at once.
//     Any other result, ostro_fail and a trap apply nothing.
//   - Calls of the store return OSTRO_OK or a negative ostro_status.
//
// Include it in one file of a module only.
#ifndef OSTRO_H
#define OSTRO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
	OSTRO_OK = 0,
	OSTRO_ABSENT = -1,     // there is no such key
	OSTRO_ELSEWHERE = -2,  // another node has this key: use one hash tag, as in {user7}:friends
	OSTRO_TOO_LARGE = -3,  // the key or the value is
	OSTRO_READ_ONLY = -4,  // the function was invoked for reading only
	OSTRO_NO_TABLE = -5,   // no such table, or not the tenant's
	OSTRO_FULL = -6,       // the store has no room for this write
} ostro_status;

typedef enum { OSTRO_DEBUG, OSTRO_INFO, OSTRO_WARNING, OSTRO_ERROR } ostro_level;

// Codes that the SDK itself ends calls with; choose yours outside of 240 to 255.
enum { OSTRO_OUT_OF_MEMORY = 240, OSTRO_BAD_ARGUMENT = 241, OSTRO_STORE = 242 };

// ostro_bytes is a run of bytes that belongs to somebody else.
typedef struct {
	const uint8_t *ptr;
	uint32_t len;
} ostro_bytes;

// OSTRO_FN(name) { ... } defines a function that is invoked as name. Its body
// returns 0, or a code that the caller gets as an error.
#define OSTRO_FN(name)                                                              \
	static int32_t ostro_body_##name(void);                                     \
	__attribute__((export_name("ostro_fn_" #name))) int32_t ostro_fn_##name(void) \
	{                                                                           \
		ostro_begin();                                                      \
		return ostro_body_##name();                                         \
	}                                                                           \
	static int32_t ostro_body_##name(void)

// OSTRO_TEXT("literal") is the literal's bytes.
#define OSTRO_TEXT(literal) ((ostro_bytes){(const uint8_t *)(literal), sizeof(literal) - 1})

// ---- The interface itself: docs/function-abi.md ----

#define OSTRO_IMPORT(name) __attribute__((import_module("ostro"), import_name(#name)))

OSTRO_IMPORT(args) uint32_t ostro_abi_args(void *buf, uint32_t cap);
OSTRO_IMPORT(get) int64_t ostro_abi_get(uint32_t table, const void *key, uint32_t key_len, void *buf, uint32_t cap);
OSTRO_IMPORT(read) int32_t ostro_abi_read(uint32_t view, uint32_t offset, void *buf, uint32_t len);
OSTRO_IMPORT(multiget) int32_t ostro_abi_multiget(uint32_t table, const void *keys, uint32_t n, void *results, void *buf, uint32_t cap);
OSTRO_IMPORT(alloc) int32_t ostro_abi_alloc(uint32_t table, const void *key, uint32_t key_len, uint32_t len);
OSTRO_IMPORT(fill) int32_t ostro_abi_fill(int32_t buffer, uint32_t offset, const void *ptr, uint32_t len);
OSTRO_IMPORT(put) int32_t ostro_abi_put(int32_t buffer, int64_t ttl_millis);
OSTRO_IMPORT(set) int32_t ostro_abi_set(uint32_t table, const void *key, uint32_t key_len, const void *ptr, uint32_t len, int64_t ttl_millis);
OSTRO_IMPORT(del) int32_t ostro_abi_del(uint32_t table, const void *key, uint32_t key_len);
OSTRO_IMPORT(scan) int32_t ostro_abi_scan(uint32_t table, void *cursor, const void *prefix, uint32_t prefix_len, void *buf, uint32_t cap, uint32_t flags);
OSTRO_IMPORT(resp) int32_t ostro_abi_resp(const void *ptr, uint32_t len);
OSTRO_IMPORT(yield) void ostro_abi_yield(void);
OSTRO_IMPORT(log) void ostro_abi_log(uint32_t level, const void *ptr, uint32_t len);
OSTRO_IMPORT(now) int64_t ostro_abi_now(void);
OSTRO_IMPORT(random) void ostro_abi_random(void *ptr, uint32_t len);
OSTRO_IMPORT(fail) __attribute__((noreturn)) void ostro_abi_fail(int32_t code, const void *ptr, uint32_t len);

// ---- What compilers call by themselves ----

__attribute__((weak)) void *memcpy(void *to, const void *from, size_t n) { return __builtin_memcpy(to, from, n); }
__attribute__((weak)) void *memmove(void *to, const void *from, size_t n) { return __builtin_memmove(to, from, n); }
__attribute__((weak)) void *memset(void *to, int byte, size_t n) { return __builtin_memset(to, byte, n); }

// As many bytes at once as are the same: keys often begin alike.
__attribute__((weak)) int memcmp(const void *a, const void *b, size_t n)
{
	const uint8_t *x = a, *y = b;
	for (uint64_t p, q; n >= 8; n -= 8, x += 8, y += 8) {
		__builtin_memcpy(&p, x, 8);
		__builtin_memcpy(&q, y, 8);
		if (p != q)
			break;
	}
	if (n >= 4) {
		uint32_t p, q;
		__builtin_memcpy(&p, x, 4);
		__builtin_memcpy(&q, y, 4);
		if (p == q) {
			n -= 4;
			x += 4;
			y += 4;
		}
	}
	for (; n > 0; n--, x++, y++)
		if (*x != *y)
			return *x < *y ? -1 : 1;
	return 0;
}

__attribute__((weak)) size_t strlen(const char *text)
{
	size_t n = 0;
	while (text[n] != 0)
		n++;
	return n;
}

// ---- Ends ----

// ostro_fail ends the call with an error that carries code and message; nothing
// that was written is applied.
__attribute__((noreturn)) static inline void ostro_fail(int32_t code, const char *message)
{
	ostro_abi_fail(code, message, (uint32_t)strlen(message));
}

// ostro_must ends the call if a write or a read failed, with the status' name.
static inline void ostro_must(int32_t status)
{
	static const char *const names[] = {
		"", "no such key", "another node has this key: use one hash tag for all keys of a call",
		"a key or value is too large", "invoked for reading only", "no such table", "the store is full",
	};
	if (__builtin_expect(status < 0, 0))
		ostro_fail(OSTRO_STORE, status >= OSTRO_FULL ? names[-status] : "the store refused");
}

// ---- Memory: a bump pointer from the heap's base on, begun anew by every call ----

extern uint8_t __heap_base;
static uint8_t *ostro_next, *ostro_end; // next is 8-aligned; [next, end) is free
static ostro_bytes ostro_block;         // of args; ptr is 0 until asked for

// The area: the host puts arguments there before a call, and takes the response
// from there when the function has returned. What does not fit takes a call.
static uint8_t ostro_args_room[2048] __attribute__((aligned(8))), ostro_resp_room[2048] __attribute__((aligned(8)));
static struct {
	uint8_t *args;
	uint32_t args_cap, args_len;
	const uint8_t *resp;
	uint32_t resp_cap, resp_len;
	uint8_t *first; // where the host puts the value of the first key, if it thinks that the function will ask for it
	uint32_t first_cap;
	int32_t first_len; // negative: it did not, or the value may not be the one to see any more
	uint32_t first_used;
} ostro_places __attribute__((aligned(64))) = {ostro_args_room, sizeof ostro_args_room, 0, ostro_resp_room, sizeof ostro_resp_room, 0, 0, 0, -1, 0};

__attribute__((export_name("ostro_area"))) void *ostro_area(void) { return &ostro_places; }
__attribute__((export_name("ostro_first"))) void ostro_first(void) {} // says that the area has first

static inline void ostro_begin(void)
{
	ostro_next = (uint8_t *)(((uintptr_t)&__heap_base + 7) & ~(uintptr_t)7);
	ostro_end = (uint8_t *)(__builtin_wasm_memory_size(0) << 16);
	ostro_places.first = ostro_next;
	ostro_places.first_cap = (uint32_t)(ostro_end - ostro_next);
	if (ostro_places.first_len > 0)
		ostro_next += ((uint32_t)ostro_places.first_len + 7) & ~7u;
	ostro_places.resp = ostro_resp_room;
	ostro_places.resp_cap = sizeof ostro_resp_room;
	ostro_block.ptr = NULL;
	if (ostro_places.args_len - 1 < sizeof ostro_args_room) // 0 is none
		ostro_block = (ostro_bytes){ostro_args_room, ostro_places.args_len};
}

static __attribute__((noinline)) void ostro_grow(uint32_t n)
{
	uint32_t pages = (uint32_t)(((uint64_t)n - (uint32_t)(ostro_end - ostro_next) + 65535) >> 16);
	if (__builtin_wasm_memory_grow(0, pages) == (size_t)-1)
		ostro_fail(OSTRO_OUT_OF_MEMORY, "the function needs more memory than it may have");
	ostro_end += (size_t)pages << 16;
}

// ostro_mem returns n bytes of the call's memory, 8-aligned, with any content.
static inline void *ostro_mem(uint32_t n)
{
	uint32_t whole = n > UINT32_MAX - 7 ? UINT32_MAX : (n + 7) & ~7u;
	if (whole > (uint32_t)(ostro_end - ostro_next))
		ostro_grow(whole);
	uint8_t *at = ostro_next;
	ostro_next += whole;
	return at;
}

// ostro_mark and ostro_release give memory back early: all that was taken since
// the mark. For loops over many values.
static inline void *ostro_mark(void) { return ostro_next; }
static inline void ostro_release(void *mark) { ostro_next = mark; }

// ---- Arguments ----

static inline uint32_t ostro_u32(const uint8_t *p)
{
	uint32_t n;
	__builtin_memcpy(&n, p, 4);
	return n;
}

static inline uint64_t ostro_u64(const uint8_t *p)
{
	uint64_t n;
	__builtin_memcpy(&n, p, 8);
	return n;
}

static inline const uint8_t *ostro_args(void)
{
	if (ostro_block.ptr)
		return ostro_block.ptr;
	uint32_t cap = (uint32_t)(ostro_end - ostro_next);
	uint32_t len = ostro_abi_args(ostro_next, cap);
	uint8_t *at = ostro_mem(len);
	if (len > cap)
		ostro_abi_args(at, len);
	ostro_block = (ostro_bytes){at, len};
	return at;
}

static inline uint32_t ostro_nkeys(void) { return ostro_u32(ostro_args()); }
static inline uint32_t ostro_nargs(void) { return ostro_u32(ostro_args() + 4); }

static inline ostro_bytes ostro_nth(uint32_t n)
{
	const uint8_t *lens = ostro_args() + 8;
	const uint8_t *at = lens + 4 * (ostro_nkeys() + ostro_nargs());
	for (uint32_t i = 0; i < n; i++)
		at += ostro_u32(lens + 4 * i);
	return (ostro_bytes){at, ostro_u32(lens + 4 * n)};
}

// ostro_key returns the i-th key of the invocation; the call fails without it.
static inline ostro_bytes ostro_key(uint32_t i)
{
	if (i >= ostro_nkeys())
		ostro_fail(OSTRO_BAD_ARGUMENT, "a key is missing");
	return ostro_nth(i);
}

// ostro_arg returns the i-th argument; the call fails without it.
static inline ostro_bytes ostro_arg(uint32_t i)
{
	if (i >= ostro_nargs())
		ostro_fail(OSTRO_BAD_ARGUMENT, "an argument is missing");
	return ostro_nth(ostro_nkeys() + i);
}

// ostro_parse reads a decimal number, with a sign if need be, that fits 64 bits.
static inline bool ostro_parse(ostro_bytes text, int64_t *number)
{
	bool minus = text.len > 0 && text.ptr[0] == '-';
	uint64_t n = 0, most = minus ? (uint64_t)INT64_MAX + 1 : INT64_MAX;
	if (text.len == minus)
		return false;
	for (uint32_t i = minus; i < text.len; i++) {
		uint8_t digit = text.ptr[i] - '0';
		if (digit > 9 || (i >= 18 && n > (most - digit) / 10)) // 18 digits cannot overflow
			return false;
		n = n * 10 + digit;
	}
	*number = (int64_t)(minus ? 0 - n : n);
	return true;
}

// ostro_arg_number returns the i-th argument, a decimal number; the call fails
// if it is none.
static inline int64_t ostro_arg_number(uint32_t i)
{
	int64_t n;
	if (!ostro_parse(ostro_arg(i), &n))
		ostro_fail(OSTRO_BAD_ARGUMENT, "an argument should be a number");
	return n;
}

// ---- Reads ----

// ostro_is_first tells whether these bytes are the first key where it lies.
static inline bool ostro_is_first(ostro_bytes key)
{
	const uint8_t *block = ostro_block.ptr;
	return block && key.ptr == block + 8 + 4 * (ostro_u32(block) + ostro_u32(block + 4)) && ostro_u32(block) > 0 && key.len == ostro_u32(block + 8);
}

// ostro_get_in finds a key's value: OSTRO_OK, OSTRO_ABSENT or another status. The
// value stays as it is until the call's end, whatever happens to the key.
static inline int32_t ostro_get_in(uint32_t table, ostro_bytes key, ostro_bytes *value)
{
	if (table == 0 && ostro_places.first_len >= 0 && ostro_is_first(key)) {
		*value = (ostro_bytes){ostro_places.first, (uint32_t)ostro_places.first_len};
		ostro_places.first_len = -1;
		ostro_places.first_used = 1;
		return OSTRO_OK;
	}
	uint32_t cap = (uint32_t)(ostro_end - ostro_next);
	int64_t found = ostro_abi_get(table, key.ptr, key.len, ostro_next, cap);
	*value = (ostro_bytes){NULL, 0};
	if (found < 0)
		return (int32_t)found;
	uint32_t len = (uint32_t)found, view = (uint32_t)(found >> 32);
	uint8_t *at = ostro_mem(len);
	if (view != 0)
		ostro_abi_read(view, 0, at, len);
	*value = (ostro_bytes){at, len};
	return OSTRO_OK;
}

static inline int32_t ostro_get(ostro_bytes key, ostro_bytes *value) { return ostro_get_in(0, key, value); }

// ostro_found is one value of ostro_multiget: status OSTRO_OK, or why there is none.
// It is laid out as the interface fills it in, where status is the view's number.
typedef struct {
	ostro_bytes value;
	int32_t status;
	uint32_t reserved;
} ostro_found;

// ostro_mend completes entries that are absent, or did not fit.
static __attribute__((noinline)) void ostro_mend(ostro_found *found, uint32_t n)
{
	for (ostro_found *f = found; f < found + n; f++) {
		uint32_t view = (uint32_t)f->status;
		f->status = OSTRO_OK;
		if ((int32_t)f->value.len < 0) {
			f->status = (int32_t)f->value.len;
			f->value = (ostro_bytes){NULL, 0};
		} else if (view != 0) {
			uint8_t *at = ostro_mem(f->value.len);
			ostro_abi_read(view, 0, at, f->value.len);
			f->value.ptr = at;
		}
	}
}

// ostro_multiget_in finds the values of n keys, 4,096 at most, and returns how
// many there are, or a negative status.
static inline int32_t ostro_multiget_in(uint32_t table, const ostro_bytes *keys, uint32_t n, ostro_found *found)
{
	int32_t count = ostro_abi_multiget(table, keys, n, found, ostro_next, (uint32_t)(ostro_end - ostro_next));
	if (count < 0)
		return count;
	const uint8_t *used = ostro_next;
	uint32_t odd = (uint32_t)count - n; // 0 if all are there, and in memory
	for (uint32_t i = 0; i < n; i++) {
		odd |= (uint32_t)found[i].status;
		if ((int32_t)found[i].value.len > 0 && found[i].status == 0)
			used = found[i].value.ptr + found[i].value.len;
	}
	ostro_mem((uint32_t)(used - ostro_next));
	if (odd)
		ostro_mend(found, n);
	return count;
}

static inline int32_t ostro_multiget(const ostro_bytes *keys, uint32_t n, ostro_found *found)
{
	return ostro_multiget_in(0, keys, n, found);
}

// ostro_scan walks over the tenant's keys of this node that begin with a
// prefix, in no order:
//
//     ostro_scan s = ostro_scan_begin(OSTRO_TEXT("user:"), true);
//     ostro_bytes key, value;
//     while (ostro_scan_next(&s, &key, &value)) { ... }
//
// Keys and values are valid until the next call of ostro_scan_next. Without
// values, value.len is told and value.ptr is NULL. An entry larger than the
// scan's buffer is left out and counted in s.skipped. s.status is negative if the
// scan ended by a mistake.
typedef struct {
	uint64_t cursor;
	ostro_bytes prefix;
	uint8_t *buf, *at;
	uint32_t table, cap, left, skipped;
	int32_t status;
	bool values, last;
} ostro_scan;

static inline ostro_scan ostro_scan_in(uint32_t table, ostro_bytes prefix, bool values, uint32_t cap)
{
	return (ostro_scan){.table = table, .prefix = prefix, .values = values, .cap = cap, .buf = ostro_mem(cap)};
}

static inline ostro_scan ostro_scan_begin(ostro_bytes prefix, bool values) { return ostro_scan_in(0, prefix, values, 16384); }

static inline bool ostro_scan_next(ostro_scan *s, ostro_bytes *key, ostro_bytes *value)
{
	while (s->left == 0) {
		if (s->last || s->status < 0)
			return false;
		int32_t n = ostro_abi_scan(s->table, &s->cursor, s->prefix.ptr, s->prefix.len, s->buf, s->cap, s->values);
		s->last = s->cursor == 0;
		if (n == OSTRO_TOO_LARGE)
			s->skipped++;
		else if (n < 0)
			s->status = n;
		s->left = n > 0 ? (uint32_t)n : 0;
		s->at = s->buf;
	}
	s->left--;
	uint32_t key_len = ostro_u32(s->at), value_len = ostro_u32(s->at + 4);
	*key = (ostro_bytes){s->at + 8, key_len};
	*value = (ostro_bytes){s->values ? s->at + 8 + key_len : NULL, value_len};
	s->at += 8 + key_len + (s->values ? value_len : 0);
	return true;
}

// ---- Writes: applied when the function has returned 0 ----

static inline int32_t ostro_set_in(uint32_t table, ostro_bytes key, ostro_bytes value, int64_t ttl_millis)
{
	ostro_places.first_len = -1; // A function sees its own writes.
	return ostro_abi_set(table, key.ptr, key.len, value.ptr, value.len, ttl_millis);
}

// ostro_set gives a key a value; the key does not expire.
static inline int32_t ostro_set(ostro_bytes key, ostro_bytes value) { return ostro_set_in(0, key, value, 0); }

// ostro_buffer is a new value in the store's memory, written piece by piece and
// copied no further: ostro_alloc, ostro_fill as often as need be, ostro_put.
typedef struct {
	int32_t id; // or a negative status
	uint32_t at;
} ostro_buffer;

static inline ostro_buffer ostro_alloc_in(uint32_t table, ostro_bytes key, uint32_t len)
{
	return (ostro_buffer){ostro_abi_alloc(table, key.ptr, key.len, len), 0};
}

static inline ostro_buffer ostro_alloc(ostro_bytes key, uint32_t len) { return ostro_alloc_in(0, key, len); }

// ostro_fill appends to what was filled in before. A buffer that was refused
// takes nothing, and ostro_put says why.
static inline void ostro_fill(ostro_buffer *b, const void *ptr, uint32_t len)
{
	if (b->id < 0)
		return;
	ostro_abi_fill(b->id, b->at, ptr, len);
	b->at += len;
}

// ostro_put makes the buffer its key's value; ttl_millis 0: it does not expire.
static inline int32_t ostro_put(ostro_buffer b, int64_t ttl_millis)
{
	ostro_places.first_len = -1;
	return b.id < 0 ? b.id : ostro_abi_put(b.id, ttl_millis);
}

static inline int32_t ostro_del_in(uint32_t table, ostro_bytes key)
{
	ostro_places.first_len = -1;
	return ostro_abi_del(table, key.ptr, key.len);
}

static inline int32_t ostro_del(ostro_bytes key) { return ostro_del_in(0, key); }

// ---- The response ----

// What is too large for the area follows what was left there.
static __attribute__((noinline)) void ostro_resp_call(ostro_bytes piece)
{
	if (ostro_places.resp_len > 0)
		ostro_abi_resp(ostro_places.resp, ostro_places.resp_len);
	ostro_places.resp = ostro_resp_room;
	ostro_places.resp_cap = sizeof ostro_resp_room;
	ostro_places.resp_len = 0;
	ostro_abi_resp(piece.ptr, piece.len);
}

// ostro_resp appends to the response.
static inline void ostro_resp(ostro_bytes piece)
{
	uint32_t at = ostro_places.resp_len;
	if (__builtin_expect(ostro_places.resp != ostro_resp_room || piece.len > sizeof ostro_resp_room - at, 0)) {
		ostro_resp_call(piece);
		return;
	}
	__builtin_memcpy(ostro_resp_room + at, piece.ptr, piece.len);
	ostro_places.resp_len = at + piece.len;
}

// ostro_resp_view is ostro_resp of bytes that stay as they are until the function
// returns, as values do: as the only piece they are not copied.
static inline void ostro_resp_view(ostro_bytes piece)
{
	if (ostro_places.resp_len > 0 || piece.len == 0) {
		ostro_resp(piece);
		return;
	}
	ostro_places.resp = piece.ptr;
	ostro_places.resp_cap = piece.len;
	ostro_places.resp_len = piece.len;
}

static inline void ostro_resp_text(const char *text) { ostro_resp((ostro_bytes){(const uint8_t *)text, (uint32_t)strlen(text)}); }

static inline uint32_t ostro_tenth(uint32_t n) { return (uint32_t)((n * (uint64_t)0xcccccccd) >> 35); }

// ostro_decimal writes a number in decimal digits to the end of room, and
// returns where they are.
static inline ostro_bytes ostro_decimal(int64_t number, uint8_t room[20])
{
	uint8_t *at = room + 20;
	uint64_t n = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
	// Nine digits at a time, for they fit 32 bits: there a division by ten is a
	// multiplication.
	for (; n > 999999999; n /= 1000000000) {
		uint32_t low = (uint32_t)(n % 1000000000);
		for (int i = 0; i < 9; i++, low = ostro_tenth(low))
			*--at = (uint8_t)('0' + (low - 10 * ostro_tenth(low)));
	}
	uint32_t top = (uint32_t)n;
	do
		*--at = (uint8_t)('0' + (top - 10 * ostro_tenth(top)));
	while ((top = ostro_tenth(top)) > 0);
	if (number < 0)
		*--at = '-';
	return (ostro_bytes){at, (uint32_t)(room + 20 - at)};
}

static inline void ostro_resp_number(int64_t number)
{
	uint8_t room[20];
	ostro_resp(ostro_decimal(number, room));
}

// ---- The rest ----

// ostro_yield lets others run. It is never necessary: every call of the store does.
static inline void ostro_yield(void) { ostro_abi_yield(); }

static inline void ostro_log(ostro_level level, const char *line)
{
	ostro_abi_log(level, line, (uint32_t)strlen(line));
}

// ostro_now returns nanoseconds since 1970, in steps of a millisecond.
static inline int64_t ostro_now(void) { return ostro_abi_now(); }

static inline uint64_t ostro_random(void)
{
	uint64_t n;
	ostro_abi_random(&n, sizeof n);
	return n;
}

#endif
