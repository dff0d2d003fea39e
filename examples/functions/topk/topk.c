// topk: the vectors that are most similar to a given one.
//
//   topk PREFIX K VECTOR       by cosine
//   topk_dot PREFIX K VECTOR   by inner product
//
// A vector is a record whose key begins with PREFIX and whose value is 32-bit
// floats, little endian; VECTOR is the same. Records of another length are left
// out. The response has at most K entries, the most similar first, of equal ones
// that whose key is less:
//
//   f32 similarity   u32 length of the key   key
//
// All vectors of this node with the prefix are looked at: 64 floats take some
// tens of nanoseconds each, so this is for tens of thousands, not for millions.
#include "ostro.h"

enum { BAD_K = 1, BAD_VECTOR = 2, MOST = 1000 };

typedef struct {
	float similarity;
	ostro_bytes key;
} hit;

// A heap whose root is the worst of the best.
typedef struct {
	hit *hits;
	uint32_t used, k;
} best;

typedef float lanes __attribute__((vector_size(16), aligned(4)));

static inline float total(lanes v) { return (v[0] + v[1]) + (v[2] + v[3]); }

// dot is the inner product of two vectors, and if it is asked for that of the second with itself: its floats are read
// once. Several sums grow at a time, since none has to wait for another then, and a round of the loop does as much as
// registers have room for, since each round has its price, too.
static inline __attribute__((always_inline)) float dot(const float *a, const float *b, uint32_t n, float *square)
{
	lanes sums[4] = {{0}}, squares[4] = {{0}};
	uint32_t i = 0;
	for (; n - i >= 32; i += 32) {
#pragma clang loop unroll(full)
		for (uint32_t j = 0; j < 8; j++) {
			lanes x = *(const lanes *)(a + i + 4 * j), y = *(const lanes *)(b + i + 4 * j);
			sums[j % 4] += x * y;
			if (square)
				squares[j % 4] += y * y;
		}
	}
	float sum = total((sums[0] + sums[1]) + (sums[2] + sums[3]));
	float own = total((squares[0] + squares[1]) + (squares[2] + squares[3]));
	for (; i < n; i++) {
		sum += a[i] * b[i];
		own += b[i] * b[i];
	}
	if (square)
		*square = own;
	return sum;
}

static bool same(ostro_bytes a, ostro_bytes b) { return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0; }

static bool less(ostro_bytes a, ostro_bytes b)
{
	int order = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);
	return order != 0 ? order < 0 : a.len < b.len;
}

static bool worse(const hit *a, const hit *b)
{
	return a->similarity != b->similarity ? a->similarity < b->similarity : less(b->key, a->key);
}

static void swap(hit *a, hit *b)
{
	hit t = *a;
	*a = *b;
	*b = t;
}

static void sink(hit *hits, uint32_t i, uint32_t n)
{
	for (;;) {
		uint32_t child = 2 * i + 1;
		if (child >= n)
			return;
		if (child + 1 < n && worse(&hits[child + 1], &hits[child]))
			child++;
		if (!worse(&hits[child], &hits[i]))
			return;
		swap(&hits[i], &hits[child]);
		i = child;
	}
}

static void rise(hit *hits, uint32_t i)
{
	for (; i > 0 && worse(&hits[i], &hits[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&hits[i], &hits[(i - 1) / 2]);
}

// A scan may give a key twice.
static bool had(const best *b, ostro_bytes key)
{
	for (uint32_t i = 0; i < b->used; i++)
		if (same(b->hits[i].key, key))
			return true;
	return false;
}

static void offer(best *b, float similarity, ostro_bytes key)
{
	hit h = {similarity, key};
	if (b->used == b->k && !worse(&b->hits[0], &h))
		return;
	if (had(b, key))
		return;
	uint8_t *copy = ostro_mem(key.len);
	memcpy(copy, key.ptr, key.len);
	h.key.ptr = copy;
	if (b->used < b->k) {
		b->hits[b->used] = h;
		rise(b->hits, b->used++);
		return;
	}
	b->hits[0] = h;
	sink(b->hits, 0, b->used);
}

static void answer(best *b)
{
	for (uint32_t n = b->used; n > 1; n--) { // Sorts: the worst goes last.
		swap(&b->hits[0], &b->hits[n - 1]);
		sink(b->hits, 0, n - 1);
	}
	for (uint32_t i = 0; i < b->used; i++) {
		hit *h = &b->hits[i];
		ostro_resp((ostro_bytes){(uint8_t *)&h->similarity, 4});
		ostro_resp((ostro_bytes){(uint8_t *)&h->key.len, 4});
		ostro_resp(h->key);
	}
}

static int32_t search(bool cosine)
{
	int64_t k = ostro_arg_number(0);
	ostro_bytes query = ostro_arg(1);
	if (k < 1 || k > MOST)
		ostro_fail(BAD_K, "K should be from 1 to 1000");
	if (query.len == 0 || query.len % 4 != 0)
		ostro_fail(BAD_VECTOR, "a vector is 32-bit floats, at least one");

	uint32_t n = query.len / 4;
	float *vector = ostro_mem(query.len), *other = ostro_mem(query.len); // aligned
	memcpy(vector, query.ptr, query.len);
	float length = __builtin_sqrtf(dot(vector, vector, n, NULL));
	best b = {ostro_mem((uint32_t)(k * sizeof(hit))), 0, (uint32_t)k};

	ostro_scan s = ostro_scan_in(0, ostro_key(0), true, 65536 + query.len);
	ostro_bytes key, value;
	while (ostro_scan_next(&s, &key, &value)) {
		if (value.len != query.len)
			continue;
		memcpy(other, value.ptr, value.len);
		float similarity, square;
		if (cosine) {
			similarity = dot(vector, other, n, &square);
			float lengths = length * __builtin_sqrtf(square);
			similarity = lengths > 0 ? similarity / lengths : 0;
		} else {
			similarity = dot(vector, other, n, NULL);
		}
		offer(&b, similarity, key);
	}
	ostro_must(s.status);
	answer(&b);
	return 0;
}

OSTRO_FN(topk) { return search(true); }
OSTRO_FN(topk_dot) { return search(false); }
